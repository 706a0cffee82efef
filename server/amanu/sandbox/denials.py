"""The words in which programs report what the sandbox withheld from them."""

import re

NETWORK = re.compile(
    r"network is unreachable|could not resolve|temporary failure in name resolution|name or service not known"
    r"|\b(EAI_AGAIN|ENETUNREACH|ENOTFOUND)\b|no address associated with hostname|dns error|failed to lookup address"
    r"|failed to establish a new connection|no such host|unable to access 'https?://|network unreachable",
    re.IGNORECASE,
)
READ_ONLY = re.compile(r"read-only file system|\bEROFS\b", re.IGNORECASE)
