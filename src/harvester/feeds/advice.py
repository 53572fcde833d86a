"""Causes and remedies of failed runs by error code: one table for pages, commands, the API and the runbook."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Why runs fail with certain error codes, and what to do.

    Attributes:
        codes: the error codes.
        cause: the usual cause.
        action: what to do; `words between backticks` are commands and settings.
    """

    codes: tuple[str, ...]
    cause: str
    action: str


ADVICE: Final = (
    Advice(
        codes=(
            *("CONNECTION_REFUSED", "CONNECTION_LOST", "CONNECT_TIMEOUT", "DNS_FAILED", "DNS_TIMEOUT"),
            *("HOST_UNREACHABLE", "REMOTE_BUSY", "REMOTE_TIMEOUT", "TRANSFER_TOO_SLOW", "TRANSFER_TOO_LONG"),
        ),
        cause="the partner's server is away or too slow",
        action="Nothing at first: the next scheduled run tries again. If this persists, write to the partner.",
    ),
    Advice(
        codes=("AUTH_FAILED", "INVALID_PRIVATE_KEY", "CREDENTIALS_MISSING"),
        cause="the password or key is wrong, expired or missing",
        action="Check the user name and enter the password or key again (`harvester feed credentials FEED`), then test "
        "the feed (`harvester feed test FEED`).",
    ),
    Advice(
        codes=("REMOTE_FILE_NOT_FOUND", "NOT_A_FILE"),
        cause="the path is wrong, or the partner moved the file",
        action="Check the path: it names one file, and upper and lower case differ (`harvester feed set FEED "
        "path=...`). Then test the feed.",
    ),
    Advice(
        codes=("PERMISSION_DENIED",),
        cause="the login may not read the file",
        action="Ask the partner to let this account read the file, or correct the path, then test the feed.",
    ),
    Advice(
        codes=("PROTOCOL_MISMATCH",),
        cause="another kind of server, or one without a common algorithm",
        action="Correct transport and port (`harvester feed set FEED transport=... port=...`), then test the feed.",
    ),
    Advice(
        codes=("PLAIN_FTP_FORBIDDEN",),
        cause="plain FTP is switched off on this installation",
        action="Ask the partner for SFTP. Only if there is none, set `AFFILIATE_FEED_ALLOW_PLAIN_FTP`.",
    ),
    Advice(
        codes=("HOST_KEY_UNKNOWN",),
        cause="the server's host key is not approved yet",
        action="Test the feed, which shows the key. Compare it with the partner's, then approve it "
        "(`harvester feed host-key FEED SHA256:...`).",
    ),
    Advice(
        codes=("HOST_KEY_CHANGED",),
        cause="the server shows another host key than the approved one",
        action="The feed's page shows both keys. Approve the new one only if the partner confirms it. The runbook has "
        "a section for it, A host key changed.",
    ),
    Advice(
        codes=("EGRESS_REFUSED", "EGRESS_INVALID_HOST"),
        cause="the host is in a network that is not allowed, or is not a host name",
        action="Check the host. A private network has to be allowed first, with `HARVESTER_EGRESS_ALLOW`.",
    ),
    Advice(
        codes=(
            *("FILE_SIZE_LIMIT_EXCEEDED", "ROW_COUNT_LIMIT_EXCEEDED", "UNIQUE_PRODUCT_LIMIT_EXCEEDED"),
            "INFLATE_LIMIT_EXCEEDED",
        ),
        cause="the file is larger than the feed's limits allow",
        action="Check that it is the right file, then raise the limit (`harvester feed set --help` lists them).",
    ),
    Advice(
        codes=("TRUNCATED", "TRUNCATED_GZIP", "TRUNCATED_DOWNLOAD", "FILE_CHANGED", "COUNT_MISMATCH"),
        cause="the file was incomplete, or changed while it was read",
        action="Nothing at first: it was probably being uploaded. A plain file that only lacks its final line feed is "
        "imported, with a warning, if it is still the same at the next scheduled run; another file that lacks it is "
        "then imported without its last row. `harvester feed run FEED --force` imports it now. If this persists, "
        "write to the partner.",
    ),
    Advice(
        codes=("EMPTY_FILE", "HEADER_UNREADABLE", "ENCODING_UNREADABLE", "HTML_INSTEAD_OF_CSV", "BAD_GZIP"),
        cause="the file is not a catalog that can be read",
        action="Download the kept file (`harvester runs file RUN`) and look at it. Check the feed's path and network; "
        "otherwise write to the partner.",
    ),
    Advice(
        codes=("NO_VALID_PRODUCTS",),
        cause="not one row of the file can be used",
        action="Look at the rejected rows of the run (`harvester runs show RUN`). Another network or a default "
        "currency may help; otherwise write to the partner.",
    ),
    Advice(
        codes=("MANIFEST_UNREADABLE", "UNREADABLE_XML"),
        cause="the partner's manifest cannot be read",
        action="Nothing at first: it may be uploaded again. If this persists, switch the manifest check off "
        "(`harvester feed set FEED use_manifest=false`) and write to the partner.",
    ),
    Advice(
        codes=("DISK_FULL", "ARTIFACT_STORE_FAILED", "ARTIFACT_STORE_FORBIDDEN"),
        cause="this machine cannot store the file",
        action="Free space in `HARVESTER_HOME`, or let Harvester write there; `harvester doctor` checks both.",
    ),
    Advice(
        codes=("ARTIFACT_MISSING",),
        cause="the stored file of the run is gone from this machine",
        action="Run the feed again; it downloads the file. If workers run on several machines, they must share the "
        "directory `artifacts` of `HARVESTER_HOME`.",
    ),
    Advice(
        codes=(
            *("VAULT_UNKNOWN_KEY", "VAULT_WRONG_KEY_OR_CONTEXT", "VAULT_UNKNOWN_VERSION", "VAULT_PAYLOAD_TOO_SHORT"),
            *("VAULT_NOT_A_DOCUMENT", "INVALID_KEY"),
        ),
        cause="the worker cannot open the credentials: its `CREDENTIAL_ENCRYPTION_KEY_B64` is not the key that sealed "
        "them",
        action="Give the worker that key. If it is lost, enter the credentials again (`harvester feed credentials "
        "FEED`).",
    ),
    Advice(
        codes=("DATABASE_UNAVAILABLE",),
        cause="the database ended the session or did not respond",
        action="Look at the database's log and run `harvester doctor`, then run the feed again.",
    ),
    Advice(
        codes=("ABANDONED",),
        cause="all workers that tried the run were lost, and no attempt was left; it does not count toward the three "
        "failures",
        action="Look at the workers' logs (memory, restarts), then run the feed again.",
    ),
    Advice(
        codes=("SUPERSEDED",),
        cause="a newer run replaced it; it does not count toward the three failures",
        action="Nothing: the newer run counts.",
    ),
    Advice(
        codes=("CANCELLED",),
        cause="its job was cancelled; it does not count toward the three failures",
        action="Run the feed again when needed.",
    ),
    Advice(
        codes=("UNKNOWN_KIND", "BAD_ARGS", "JOB_TIMEOUT", "ENDING_NOT_STORED"),
        cause="the job of the run could not be carried out, often because workers of two versions are running",
        action="Update and restart all workers, then run the feed again.",
    ),
    Advice(
        codes=("UNEXPECTED",),
        cause="an error that Harvester does not recognize",
        action="Run the feed again. If it fails again, report it with the traceback of its job (`harvester jobs show "
        "ID`).",
    ),
)
_BY_CODE: Final = {code: advice for advice in ADVICE for code in advice.codes}


def advice_for(code: str | None) -> Advice | None:
    """Return the advice for an error code; None without an error, or for a code that this version does not know."""
    return _BY_CODE.get(code or "")
