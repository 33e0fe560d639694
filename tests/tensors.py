"""safetensors files as {name: (dtype, shape, bytes)}. Plain Python 3."""

import json
import struct


def read_tensors(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    return {
        k: (
            v["dtype"],
            v["shape"],
            data[8 + n + v["data_offsets"][0] : 8 + n + v["data_offsets"][1]],
        )
        for k, v in json.loads(data[8 : 8 + n]).items()
        if k != "__metadata__"
    }


def write_tensors(path, tensors):
    head, at = {}, 0
    for k, (dtype, shape, data) in tensors.items():
        head[k] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            f.write(data)
