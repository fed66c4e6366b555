# SPDX-License-Identifier: BSD-3-Clause
"""Makes the wheel and the source archive of `hte` (PEP 517), with the standard library alone.

`pip install --config-settings mooncake=yes` puts the package `mooncake` beside it: not by itself, for Mooncake's own wheel has
files of these names.

setuptools would do it too, but pip then downloads it before each build, and clusters are often not on the net.
"""

import base64
import hashlib
import io
import os
import re
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = ("pyproject.toml", "build_hte.py")


def _field(name):
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as file:
        return re.search(r'^%s = "(.*)"$' % name, file.read(), re.M).group(1)


def _metadata():
    return ("Metadata-Version: 2.1\nName: hte\nVersion: %s\nSummary: %s\nRequires-Python: %s\nLicense: BSD-3-Clause\n"
            % (_field("version"), _field("description"), _field("requires-python")))


def _modules(packages):
    return [package + "/" + name for package in packages for name in sorted(os.listdir(os.path.join(HERE, package)))
            if name.endswith(".py")]


def _packages(settings):
    wanted = (settings or {}).get("mooncake", "no")
    if wanted not in ("yes", "no"):
        raise ValueError("mooncake=%s: write yes or no" % wanted)
    return ["hte", "mooncake"] if wanted == "yes" else ["hte"]


def _read(name):
    with open(os.path.join(HERE, name), "rb") as file:
        return file.read()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    version = _field("version")
    info = "hte-%s.dist-info/" % version
    files = {name: _read(name) for name in _modules(_packages(config_settings))}
    files[info + "METADATA"] = _metadata().encode()
    files[info + "WHEEL"] = b"Wheel-Version: 1.0\nGenerator: build_hte\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join("%s,sha256=%s,%d\n" % (name, base64.urlsafe_b64encode(hashlib.sha256(data).digest())
                                            .rstrip(b"=").decode(), len(data)) for name, data in files.items())
    files[info + "RECORD"] = (record + info + "RECORD,,\n").encode()
    wheel = "hte-%s-py3-none-any.whl" % version
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    base = "hte-%s" % _field("version")
    with tarfile.open(os.path.join(sdist_directory, base + ".tar.gz"), "w:gz") as archive:
        for name in list(PROJECT) + _modules(["hte", "mooncake"]) + ["PKG-INFO"]:
            data = _metadata().encode() if name == "PKG-INFO" else _read(name)
            entry = tarfile.TarInfo(base + "/" + name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return base + ".tar.gz"
