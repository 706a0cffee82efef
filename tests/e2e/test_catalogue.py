"""A daemon asks for models in the background: nobody waits for a vendor that does not answer."""

import asyncio
import contextlib
import os
import subprocess
import sys
from pathlib import Path

from amanu.home import find_home
from support.raw_client import RawClient
from support.strict_services.listing import KEY, ListingService

AT_ONCE = """
import sys
from amanu.daemon import main
main.RECOVERY_SECONDS = main.CATALOGUE_SECONDS = 0.05
sys.exit(main.main(sys.argv[1:]))
"""
"""A daemon that has settled as soon as it runs."""
OWN = "openrouter:a/b"
ANSWER = {"data": [{"id": "a/b", "context_length": 64_000}]}


async def models(client: RawClient) -> set[str]:
    answer = await client.request("amanu/model/list")
    return {info["modelId"] for info in answer["result"]["models"]}


async def test_nobody_waits_for_it(tmp_path: Path) -> None:
    home = find_home().make()
    async with ListingService("openrouter", ANSWER).listening() as service:
        service.answering.clear()
        unused = "".join(f'{name} = "http://127.0.0.1:9/v1"\n' for name in ("ollama", "llamacpp", "vllm"))
        (home.config / "config.toml").write_text(f'[base_urls]\nopenrouter = "{service.base_url}"\n{unused}')
        ready, theirs = os.pipe()
        environment = {**os.environ, "AMANU_CATALOGUE_REFRESH": "true"}
        with subprocess.Popen(
            [sys.executable, "-P", "-c", AT_ONCE, "--ready", str(theirs)],
            env=environment,
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs,),
        ) as process:
            os.close(theirs)
            try:
                assert await asyncio.to_thread(os.read, ready, 1) == b"1", "it did not start"
                without = await RawClient.greet(home)
                await without.initialize()
                assert OWN not in await models(without)
                assert service.requests == [], "there is no key"
                client = await RawClient.greet(home, OPENROUTER_API_KEY=KEY)
                await client.initialize()
                await asyncio.wait_for(service.asked.wait(), 10)
                assert OWN not in await models(client), "the vendor is silent, the daemon is not"
                session = {"sessionId": "s", "roots": [str(tmp_path)], "modelId": OWN}
                assert "result" in await client.request("amanu/session/create", session)
                service.answering.set()
                async with asyncio.timeout(50):
                    while OWN not in await models(client):
                        await asyncio.sleep(0.05)
                assert len(service.requests) == 1, "it is asked once a day"
                assert OWN not in await models(without)
                await client.stop()
                await without.stop()
            finally:
                os.close(ready)
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    await asyncio.to_thread(process.wait, 15)
        assert process.returncode == 0
