"""`python -m weft.compiler`: the compile command without the rest of Weft."""

from weft.compiler.cli import compile_command

if __name__ == "__main__":
    compile_command()
