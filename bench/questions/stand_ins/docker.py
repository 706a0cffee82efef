"""Stands in for docker: tries to reach the daemon, asks nothing of it, and says what docker says."""

import errno
import socket
import sys

SOCKET = "/var/run/docker.sock"


def main() -> int:
    if sys.argv[1:] in (["--version"], ["-v"]):
        print("Docker version 27.3.1, build ce12230")
        return 0
    with socket.socket(socket.AF_UNIX) as daemon:
        try:
            daemon.connect(SOCKET)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM):
                print(
                    "permission denied while trying to connect to the Docker daemon socket at "
                    f"unix://{SOCKET}: dial unix {SOCKET}: connect: permission denied",
                    file=sys.stderr,
                )
            else:
                print(
                    f"Cannot connect to the Docker daemon at unix://{SOCKET}. Is the docker daemon running?",
                    file=sys.stderr,
                )
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
