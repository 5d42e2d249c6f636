"""The key that signs witnesses: Ed25519, in files outside of the database."""

import hashlib
import os
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from connectors.errors import WitnessKeyUnusable
from connectors.files.disk.atomic import OTHERS, PRIVATE_FILE, private_folder
from connectors.files.disk.system_errors import unread
from connectors.settings import AuditSettings
from schemas.guards.witness import Witness


def make_key(audit: AuditSettings) -> Ed25519PublicKey:
    """The public key of the existing private key, or of a new one; never overwrites a key.

    The public key is also written beside the private one, so that it can be handed on.
    """
    if not audit.key.exists():
        private = Ed25519PrivateKey.generate()
        content = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        _write_new(audit.key, content, PRIVATE_FILE)
    public = private_key(audit).public_key()
    if not audit.public_key.exists():
        _write_new(audit.public_key, public_text(public).encode(), 0o644)
    return public


def _write_new(path: Path, content: bytes, mode: int) -> None:
    try:
        private_folder(path.parent)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise WitnessKeyUnusable(
            f"{path} could not be written: {error.strerror}. Nothing there was overwritten; choose "
            "another file by RECON_AUDIT_KEY."
        ) from error


def private_key(audit: AuditSettings) -> Ed25519PrivateKey:
    """The key to sign with; raises WitnessKeyUnusable."""
    path = audit.key
    try:
        content = path.read_bytes()
        if path.stat().st_mode & OTHERS:
            raise WitnessKeyUnusable(
                f"The key {path} can be read by others than its owner: chmod 600 {path}."
            )
        key = load_pem_private_key(content, password=None)
    except FileNotFoundError:
        raise WitnessKeyUnusable(
            f"There is no key to sign witnesses with at {path}. Make one: recon audit key."
        ) from None
    except OSError as error:
        raise WitnessKeyUnusable(f"The key {path} {unread(error)}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise WitnessKeyUnusable(
            f"{path} is no Ed25519 private key in PEM without a password. Name one by "
            "RECON_AUDIT_KEY, or a file that is not there yet and run recon audit key."
        )
    return key


def public_key(audit: AuditSettings) -> Ed25519PublicKey:
    """The key to check with, from its own file or the private key; raises WitnessKeyUnusable."""
    path = audit.public_key
    if not path.exists() and not audit.public_key_named:
        return private_key(audit).public_key()
    try:
        key = load_pem_public_key(path.read_bytes())
    except OSError as error:
        raise WitnessKeyUnusable(
            f"The public key {path} cannot be read: {error.strerror}. Name it by "
            "RECON_AUDIT_PUBLIC_KEY."
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise WitnessKeyUnusable(f"{path} is no Ed25519 public key in PEM.")
    return key


def public_text(key: Ed25519PublicKey) -> str:
    """The public key in PEM, as openssl reads it."""
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def fingerprint(key: Ed25519PublicKey) -> str:
    """The name a witness gives its key: the SHA-256 of the public key in DER."""
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


def is_signed(key: Ed25519PublicKey, witness: Witness) -> bool:
    """Whether the witness's signature of its content is by this key."""
    try:
        key.verify(bytes.fromhex(witness.signature), witness.signed_text.encode())
    except (InvalidSignature, ValueError):
        return False
    return True
