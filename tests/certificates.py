"""Authorities and certificates of a test's own, by openssl."""

import subprocess


def openssl(directory, *arguments):
    command = ["openssl", *map(str, arguments)]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)


def authority(directory, name):
    subject = ["-subj", f"/CN={name}", "-days", "2"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    files = ["-keyout", f"{name}.key", "-out", f"{name}.crt"]
    openssl(directory, "req", "-x509", *curve, *files, *subject)


def certificate(directory, by, name, subject, extensions):
    """A key and a certificate that an authority has signed."""
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    files = ["-keyout", f"{name}.key", "-out", f"{name}.csr"]
    openssl(directory, "req", *curve, *files, "-subj", f"/CN={subject}")
    (directory / f"{name}.ext").write_text(extensions + "\n")
    signer = ["-CA", f"{by}.crt", "-CAkey", f"{by}.key", "-CAcreateserial", "-days", "2"]
    files = ["-in", f"{name}.csr", "-out", f"{name}.crt", "-extfile", f"{name}.ext"]
    openssl(directory, "x509", "-req", *files, *signer)
    (directory / f"{name}.key").chmod(0o600)
