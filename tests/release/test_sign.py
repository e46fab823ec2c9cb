"""Who made a release: signatures by OpenSSH, made and checked."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

import hedgerow as hr
from hedgerow.errors import FileError, ReleaseError
from hedgerow.release.certificate import Certificate
from hedgerow.release.verify.openssh import find_signer, sign

needs_openssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
HERE = Path(__file__).parent
WHO = "office@example.org"


@pytest.fixture
def release(tmp_path) -> Path:
    """A release to sign: the public part, in a folder of its own."""
    shutil.copytree(HERE / "release_version_1", tmp_path / "release" / "public")
    return tmp_path / "release"


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Path:
    """A folder with two keys; `signers` lists the office's for hedgerow alone."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("office", "other"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name]
        subprocess.run(command, check=True)
    line = f'press@example.org,{WHO} namespaces="hedgerow" {(folder / "office.pub").read_text()}'
    (folder / "signers").write_text(line)
    return folder


@needs_openssh
def test_a_signed_release_says_who_signed_it(release, keys, hedgerow):
    unsigned = hedgerow("verify", release, "--signers", keys / "signers")
    assert (unsigned.code, "it is not signed" in unsigned.text) == (3, True)
    assert hedgerow("sign", release, "--key", keys / "office").code == 0
    assert hr.verify_release(release, signers=keys / "signers").signer == "press@example.org"
    shown = hedgerow("verify", release, "--signers", keys / "signers")
    assert (shown.code, "Signed by press@example.org." in shown.text, "6 files" in shown.text) == (
        0,
        True,
        True,
    )
    noted = hedgerow("verify", release)
    assert (noted.code, "was not checked" in noted.text) == (0, True)
    assert hr.verify_release(release / "public").signer is None
    again = hedgerow("sign", release, "--key", keys / "office")
    assert (again.code, "exists already" in again.text) == (3, True)
    # What OpenSSH says of it without hedgerow.
    check = ["ssh-keygen", "-Y", "verify", "-f", keys / "signers", "-I", WHO, "-n", "hedgerow", "-s"]
    with (release / "public" / "certificate.json").open("rb") as content:
        subprocess.run([*check, release / "public" / "certificate.json.sig"], stdin=content, check=True)


@needs_openssh
@pytest.mark.parametrize("how", ["anew", "another key", "another purpose", "of another"])
def test_a_signature_of_something_else_is_found(release, keys, how):
    public = release / "public"
    hr.sign_release(release, key=keys / "office")
    place, certificate = public / "certificate.json.sig", public / "certificate.json"
    if how == "anew":  # consistent in itself, and not what was signed
        text = certificate.read_text().replace('"seeded": false', '"seeded": true')
        assert text != certificate.read_text()
        certificate.write_text(text)
        (public / "certificate.md").write_text(Certificate.loads(text.encode()).markdown())
    elif how == "another key":
        place.write_bytes(sign(certificate.read_bytes(), keys / "other"))
    elif how == "another purpose":
        command = ["ssh-keygen", "-q", "-Y", "sign", "-f", keys / "office", "-n", "file"]
        done = subprocess.run(command, input=certificate.read_bytes(), capture_output=True, check=True)
        place.write_bytes(done.stdout)
    else:
        place.write_bytes(sign(b"another certificate", keys / "office"))
    assert hr.verify_release(release).problems == ()
    verified = hr.verify_release(release, signers=keys / "signers")
    assert verified.signer is None
    assert verified.problems == (
        "certificate.json.sig is not a signature of this certificate by one of the signers.",
    )


@needs_openssh
@pytest.mark.parametrize("how", ["{}\nSECRET", "SECRET\n{}", "{0}{0}", "", "-----BEGIN SSH SIGNATURE-----\n"])
def test_a_signature_carries_nothing_else_out(release, keys, how):
    """What surrounds a signature is signed by nobody, and OpenSSH reads past it."""
    hr.sign_release(release, key=keys / "office")
    place = release / "public" / "certificate.json.sig"
    place.write_text(how.format(place.read_text()))
    for signers in (None, keys / "signers"):
        problems = hr.verify_release(release, signers=signers).problems
        assert problems == ("certificate.json.sig holds something else than one signature.",)


@needs_openssh
def test_only_what_verifies_is_signed(release, keys):
    (release / "public" / "copy-1.csv").write_text("x,z\n")
    with pytest.raises(ReleaseError, match=r"is not signed.*copy-1\.csv was changed"):
        hr.sign_release(release, key=keys / "office")
    assert not (release / "public" / "certificate.json.sig").exists()


@needs_openssh
@pytest.mark.parametrize("name", ["-Q", "--help", "-f", "$(touch ran)", "; touch ran", "a b'\""])
def test_names_of_files_are_never_options_nor_commands(release, keys, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    shutil.copy(keys / "office", name)
    shutil.copy(keys / "signers", f"{name}.signers")
    hr.sign_release(release, key=name)
    assert hr.verify_release(release, signers=f"{name}.signers").signer == "press@example.org"
    assert not Path("ran").exists()


@needs_openssh
@pytest.mark.parametrize(
    "who", ["-n", "-Oprint-pubkey", "*@example.org", "!nobody@example.org,me@example.org"]
)
def test_signers_of_any_name(keys, tmp_path, who):
    (tmp_path / "signers").write_text(f"{who} {(keys / 'office.pub').read_text()}")
    signature = sign(b"content", keys / "office")
    assert find_signer(b"content", signature, tmp_path / "signers") == who.split(",")[-1]
    assert find_signer(b"Content", signature, tmp_path / "signers") is None


@needs_openssh
def test_an_expired_key_does_not_count(keys, tmp_path):
    signature, key = sign(b"content", keys / "office"), (keys / "office.pub").read_text()
    for until, signer in (("20200101", None), ("20990101", WHO)):
        (tmp_path / "signers").write_text(f'{WHO} valid-before="{until}" {key}')
        assert find_signer(b"content", signature, tmp_path / "signers") == signer


@needs_openssh
def test_keys_and_signers_that_are_not_there(release, keys, tmp_path, hedgerow):
    for key, told in ((tmp_path / "absent", "absent: no such key"), (keys / "signers", "did not sign")):
        done = hedgerow("sign", release, "--key", key)
        assert (done.code, told in done.text, "Traceback" in done.text) == (3, True, False), done.text
    hr.sign_release(release, key=keys / "office")
    with pytest.raises(FileError, match="absent: cannot be read"):
        hr.verify_release(release, signers=tmp_path / "absent")


def test_without_openssh_one_clear_error(release, tmp_path, monkeypatch, hedgerow):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "key").write_text("")
    (tmp_path / "signers").write_text("")
    assert "Install OpenSSH" in hedgerow("sign", release, "--key", tmp_path / "key").text
    signature = "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"
    (release / "public" / "certificate.json.sig").write_text(signature)
    done = hedgerow("verify", release, "--signers", tmp_path / "signers")
    assert (done.code, "Install OpenSSH" in done.text) == (3, True)
    assert hedgerow("verify", release).code == 0


def test_no_signature_is_that_long(release):
    (release / "public" / "certificate.json.sig").write_bytes(bytes(1 << 17))
    with pytest.raises(ReleaseError, match="which no signature has"):
        hr.verify_release(release)


def test_the_digest_to_tell_by_another_channel_is_printed(hedgerow, table):
    done = hedgerow("synthesize", table, "--formula", "x ~ z", "--epsilon", 40, "--draws", 200, "--out", "r")
    assert hashlib.sha256(Path("r/public/certificate.json").read_bytes()).hexdigest() in done.text
