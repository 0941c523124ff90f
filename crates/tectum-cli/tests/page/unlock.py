"""Opens the page of a run that needs a token, with a wrong token and then with the right one.

    unlock.py CHROMIUM ADDRESS TOKEN
"""

import json
import sys

from browser import Browser

ASKS = "document.getElementById('ask')?.open"


def show(page, token):
    """Types a token and sends it."""
    page.value(f"document.getElementById('token').value = {json.dumps(token)};"
               "document.querySelector('#ask button').click()")


def main(program, address, token):
    with Browser(program) as browser:
        page = browser.page()
        page.open(address, 800, 700)
        page.wait(ASKS)
        assert page.value("document.getElementById('numbers').children.length") == 0
        show(page, token + "?")
        page.wait("document.getElementById('note').textContent.includes('the token is not the one')")
        page.wait(ASKS)
        show(page, token)
        page.wait("document.getElementById('state').textContent === 'paused'")
        assert not page.faults, page.faults


main(*sys.argv[1:])
