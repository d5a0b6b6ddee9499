"""What the reader of C headers reads, and what it refuses to guess."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

from qwendesk.core.engine_abi import Signature, known_abis
from qwendesk.engines.c_headers import HEADER_NAMES, Declarations, read_headers
from qwendesk.engines.c_tokens import CannotRead
from tests.engines.made_headers import headers_of


def fields_of(text: str, name: str = "s") -> list[tuple[str, str, int]]:
    return [(field.name, field.type, field.offset) for field in read_headers([text]).structs[name].fields]


def signature_of(text: str, name: str = "f") -> str:
    return str(read_headers([text]).functions[name])


def test_fields_are_aligned_and_the_struct_is_padded() -> None:
    text = "struct s { bool a; int64_t b; char c[3]; float d, *e; bool f; };"

    assert fields_of(text) == [
        ("a", "bool", 0),
        ("b", "int64", 8),
        ("c", "char[3]", 16),
        ("d", "float", 20),
        ("e", "float *", 24),
        ("f", "bool", 32),
    ]
    assert read_headers([text]).structs["s"].size == 40


def test_structs_unions_and_enums_within_structs() -> None:
    text = """
        typedef enum { A, B = 1 << 4, C } kind;
        struct inner { int8_t x; int32_t y; };
        struct s { kind k; struct inner i[2]; union { double d; char text[9]; }; const struct s * next; };
    """
    found = read_headers([text])

    assert [(field.name, field.offset, field.size) for field in found.structs["s"].fields] == [
        ("k", 0, 4),
        ("i", 4, 16),
        ("value", 24, 16),
        ("next", 40, 8),
    ]
    assert [field.offset for field in found.structs["s.value"].fields] == [0, 0]
    assert (found.constants["A"], found.constants["B"], found.constants["C"]) == (0, 16, 17)


def test_functions_are_read_with_typedefs_resolved() -> None:
    text = """
        typedef struct thing * thing_t;
        typedef int32_t id;
        typedef bool (*asked)(id which, void * user);
        API_MACRO
    """.replace("API_MACRO", "extern thing_t f(const unsigned char * data, size_t n, asked ask, id pair[2], ...);")

    assert signature_of(text) == "struct thing * (uint8 *, uint64, bool (*)(int32, void *), int32 *, ...)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#define API __attribute__((x))\nAPI int f(void);", None),
        ("#define API\nAPI int f(void);", "int32 (void)"),
        ("#ifdef __GNUC__\n#define OLD(a, b) wrong a\n#else\n#define OLD(a, b) a\n#endif\nOLD(int f(void), \"x, y\");",
         "int32 (void)"),
        ("#define N 4\n#if defined(N) && N >= 4 && !defined(M)\nint f(void);\n#else\nbool f(void);\n#endif",
         "int32 (void)"),
        ("#if 0\nint f(void);\n#elif 1\nbool f(void);\n#else\nfloat f(void);\n#endif", "bool (void)"),
        ("#ifdef __cplusplus\nextern \"C\" {\n#endif\nint f(void);\n#ifdef __cplusplus\n}\n#endif", "int32 (void)"),
        ("extern \"C\" {\nint f(void);\n}", "int32 (void)"),
        ("static inline int g(int a) { if (a) { return 1; } return 2; }\nint f(void);", "int32 (void)"),
        ("// int f(bool);\n/* int f(\nfloat); */ int f(void); // }", "int32 (void)"),
        ("int \\\nf(void);", "int32 (void)"),
        ("enum e { A };\nstruct s;\ne f(s * one, t * two);", "enum e (struct s *, t *)"),
    ],
)  # fmt: skip
def test_what_the_preprocessor_does(text: str, expected: str | None) -> None:
    found = read_headers([text]).functions.get("f")

    assert (str(found) if found else None) == expected


@pytest.mark.parametrize(
    "body",
    [
        "long n;",
        "unsigned long n;",
        "int n : 3;",
        "novel_t n;",
        "struct novel n;",
        "int n[M];",
        "\n#ifdef GGML_USE_NOVEL\nint n;\n#endif\nint m;",
        "int method(void);",
        "alignas(16) int n;",
    ],
)
def test_a_struct_whose_layout_is_not_certain_is_left_out(body: str) -> None:
    found = read_headers([f"struct s {{ {body} }}; struct t {{ int n; }};"])

    assert "s" not in found.structs
    assert "t" in found.structs


def test_values_of_an_enum_that_depends_on_the_build_are_left_out() -> None:
    found = read_headers(["enum e { A,\n#ifdef GGML_USE_NOVEL\nB,\n#endif\nC };", "struct s { enum e kind; };"])

    assert "C" not in found.constants
    assert "s" not in found.structs


def test_packed_structs_are_refused() -> None:
    assert "s" not in read_headers(["struct __attribute__((packed)) s { bool a; int b; };"]).structs
    assert "s" not in read_headers(["struct s { bool a; int b; } __attribute__((packed));"]).structs
    with pytest.raises(CannotRead):
        read_headers(["#pragma pack(push, 1)\nstruct s { bool a; int b; };"])


def test_a_function_with_a_type_that_differs_by_system_has_another_signature() -> None:
    assert "f" not in read_headers(["void f(unsigned long n);"]).functions


def test_macros_are_constants_as_far_as_they_are_numbers() -> None:
    found = read_headers(['#define A 0x10u\n#define B (A << 2)\n#define C -1\n#define D "text"\n#define E (1 << 999)'])

    assert found.constants == {"A": 16, "B": 64, "C": -1}


def test_a_header_that_ends_within_a_bracket_is_refused() -> None:
    with pytest.raises(CannotRead):
        read_headers(["int f(int a"])


def test_the_table_of_the_pinned_release_describes_itself() -> None:
    pin = known_abis()[0]

    found = read_headers([headers_of(pin)]).abi(pin.release, pin)

    assert found.functions == pin.functions
    assert found.structs == pin.structs
    assert found.constants == pin.constants
    assert {"llama_model_params", "llama_batch", "mtmd_context_params"} <= pin.exact
    assert "mtmd_input_text" not in pin.exact
    assert pin.functions["llama_decode"] == Signature("int32", ("struct llama_context *", "struct llama_batch"))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_compiler_gives_the_same_layouts(tmp_path: Path) -> None:
    """The compiler reads the headers that llama-cpp-python installed; those of the table where it installed none."""
    package = importlib.util.find_spec("llama_cpp")
    assert package is not None
    assert package.origin is not None
    folder = Path(package.origin).parent.parent / "include"
    names = [name for name in HEADER_NAMES if (folder / name).is_file()]
    if not names:
        folder, names = tmp_path, ["table.h"]
        (folder / "table.h").write_text(f"#include <stdbool.h>\n#include <stdint.h>\n{headers_of(known_abis()[0])}")
    found = read_headers([(folder / name).read_text(encoding="utf-8") for name in names])

    assert _compiled(found, folder, names, tmp_path) == _expected(found)


def _expected(found: Declarations) -> dict[str, int]:
    values = {}
    for name, layout in found.structs.items():
        if _has_name(name):
            values[f"sizeof(struct {name})"] = layout.size
            for field in layout.fields:
                if field.name != "value":
                    values[f"offsetof(struct {name}, {field.name})"] = field.offset
    return values


def _has_name(name: str) -> bool:
    """Return whether C has a name for a struct: nameless ones and unions within others have none."""
    return name.isidentifier() and name.startswith(("llama_", "ggml_", "mtmd_", "gguf_"))


def _compiled(found: Declarations, folder: Path, names: list[str], scratch: Path) -> dict[str, int]:
    asked = list(_expected(found))
    lines = ["#include <stdio.h>", "#include <stddef.h>", *(f'#include "{name}"' for name in names), "int main(void) {"]
    lines += [f'    printf("%zu\\n", {expression});' for expression in asked]
    (scratch / "sizes.c").write_text("\n".join([*lines, "    return 0;", "}"]))
    program = scratch / "sizes"
    command = ["cc", "-w", "-I", str(folder), "-o", str(program), str(scratch / "sizes.c")]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    printed = subprocess.run([str(program)], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return dict(zip(asked, map(int, printed.stdout.split()), strict=True))
