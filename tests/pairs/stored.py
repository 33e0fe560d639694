"""Dtypes, and tensors of them on disk: safetensors by the standard library alone."""

import json
import math
import struct

f64, f32, f16, bf16, i64, i32, i8, u8, boolean = (
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int8",
    "uint8",
    "bool",
)
e4m3, e5m2 = "float8_e4m3fn", "float8_e5m2"
ORDER = [
    boolean,
    u8,
    i8,
    "int16",
    i32,
    i64,
    e5m2,
    e4m3,
    f16,
    bf16,
    f32,
    f64,
    "complex64",
    "complex128",
]
KIND = {d: 0 if d == boolean else 1 if "int" in d else 3 if "complex" in d else 2 for d in ORDER}

SAFETENSORS = {
    f64: ("F64", "d"),
    f32: ("F32", "f"),
    f16: ("F16", "e"),
    bf16: ("BF16", "H"),
    i64: ("I64", "q"),
    i32: ("I32", "i"),
    "int16": ("I16", "h"),
    i8: ("I8", "b"),
    u8: ("U8", "B"),
    boolean: ("BOOL", "?"),
    e4m3: ("F8_E4M3", "B"),
    e5m2: ("F8_E5M2", "B"),
}


def float8(bits, mantissa, bias):
    """The number that 7 bits stand for."""
    e, m = bits >> mantissa, (bits & (1 << mantissa) - 1) / (1 << mantissa)
    return m * 2.0 ** (1 - bias) if e == 0 else (1 + m) * 2.0 ** (e - bias)


FLOAT8 = {
    e4m3: [float8(b, 3, 7) for b in range(0x7F)],
    e5m2: [float8(b, 2, 15) for b in range(0x7C)],
}


def to_float8(x, dtype):
    """The bits of the nearest one, the even one of two."""
    table = FLOAT8[dtype]
    best = min(range(len(table)), key=lambda b: (abs(table[b] - abs(x)), b & 1))
    return best | (0x80 if math.copysign(1, x) < 0 else 0)


def to_bf16(x):
    """The bits of the nearest bfloat16, ties to even."""
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def pack(data, dtype):
    v = data.values
    if dtype == f16:
        v = [x if math.isinf(x) else max(-65504.0, min(65504.0, x)) for x in v]
    v = (
        [to_float8(x, dtype) for x in v]
        if dtype in FLOAT8
        else [to_bf16(x) for x in v]
        if dtype == bf16
        else [float(x) for x in v]
        if KIND[dtype] == 2
        else [int(x) for x in v]
    )
    return struct.pack("<%d%s" % (len(v), SAFETENSORS[dtype][1]), *v)


def write_safetensors(path, tensors):
    header, body = {}, b""
    for name, (data, dtype) in tensors.items():
        raw = pack(data, dtype)
        header[name] = {
            "dtype": SAFETENSORS[dtype][0],
            "shape": list(data.shape),
            "data_offsets": [len(body), len(body) + len(raw)],
        }
        body += raw
    h = json.dumps(header).encode()
    h += b" " * (-len(h) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(h)) + h + body)
