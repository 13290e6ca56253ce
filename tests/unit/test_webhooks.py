"""Signatures and addresses: the pure parts of webhooks."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import InvalidInput, InvalidSignature
from headrace.webhooks import address, new_secret, sign, verify
from headrace.webhooks.delivery import retry_after_seconds

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
AT = datetime.fromtimestamp(1614265330, UTC)
BODY = b'{"test": 2432232314}'
HEADERS = {
    "webhook-id": ID,
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}


def test_the_signature_is_the_one_that_the_standards_own_libraries_give() -> None:
    assert sign(ID, AT, BODY, [SECRET]) == HEADERS
    assert sign(ID, AT, BODY, [SECRET.removeprefix("whsec_")]) == HEADERS


def test_what_is_signed_is_verified() -> None:
    secret = new_secret()
    assert secret.startswith("whsec_")
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    assert secret != new_secret()
    assert verify(sign("m", AT, BODY, [secret]), BODY, [secret], AT) == "m"
    upper = {name.title(): value for name, value in HEADERS.items()}
    assert verify(upper, BODY, [SECRET], AT) == ID


def test_while_a_secret_is_replaced_either_will_do() -> None:
    old, new = new_secret(), new_secret()
    both = sign("m", AT, BODY, [new, old])
    assert len(both["webhook-signature"].split(" ")) == 2
    for receiver in ([old], [new], [new_secret(), old]):
        assert verify(both, BODY, receiver, AT) == "m"
    with pytest.raises(InvalidSignature):
        verify(both, BODY, [new_secret()], AT)


def test_signatures_of_other_versions_beside_it_do_no_harm() -> None:
    right = HEADERS["webhook-signature"]
    others = f"v1a,{right[3:]} v1, v1,??? {right}"
    assert verify(HEADERS | {"webhook-signature": others}, BODY, [SECRET], AT) == ID
    with pytest.raises(InvalidSignature):
        verify(HEADERS | {"webhook-signature": f"v2,{right[3:]}"}, BODY, [SECRET], AT)
    many = " ".join(["v1,AAAA"] * 100 + [right])
    with pytest.raises(InvalidSignature):
        verify(HEADERS | {"webhook-signature": many}, BODY, [SECRET], AT)


@pytest.mark.parametrize(
    "changed",
    [
        {"webhook-id": "other"},
        {"webhook-timestamp": "1614265331"},
        {"webhook-timestamp": "soon"},
        {"webhook-timestamp": "1" * 5000},
        {"webhook-timestamp": "-1614265330"},
        {"webhook-timestamp": "١٦١٤٢٦٥٣٣٠"},
        {"webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OA="},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,"},
    ],
)
def test_a_header_that_was_changed_is_noticed(changed: dict[str, str]) -> None:
    with pytest.raises(InvalidSignature):
        verify(HEADERS | changed, BODY, [SECRET], AT)


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_is_missing_is_noticed(name: str) -> None:
    rest = {header: value for header, value in HEADERS.items() if header != name}
    with pytest.raises(InvalidSignature, match=name):
        verify(rest, BODY, [SECRET], AT)


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_another_body_has_another_signature(one: bytes, other: bytes) -> None:
    signed = sign("m", AT, one, [SECRET])
    if one == other:
        verify(signed, other, [SECRET], AT)
    else:
        with pytest.raises(InvalidSignature):
            verify(signed, other, [SECRET], AT)


@pytest.mark.parametrize("seconds", [-301, -300, 0, 300, 301])
def test_a_message_from_another_time_is_a_replay(seconds: int) -> None:
    now = AT + timedelta(seconds=seconds)
    if abs(seconds) <= 300:
        verify(HEADERS, BODY, [SECRET], now)
    else:
        with pytest.raises(InvalidSignature, match="too far"):
            verify(HEADERS, BODY, [SECRET], now)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_c2hvcnQ=", "whsec_not base64!", "ä"])
def test_a_secret_that_is_none_is_refused_without_being_told(secret: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        sign("m", AT, BODY, [secret])
    rest = secret.removeprefix("whsec_")
    assert not rest or rest not in caught.value.message


def test_there_must_be_a_secret_and_the_id_must_not_be_able_to_shift_what_is_signed() -> None:
    with pytest.raises(InvalidInput):
        sign("m", AT, BODY, [])
    with pytest.raises(InvalidInput):
        sign("m.1", AT, BODY, [SECRET])
    with pytest.raises(InvalidSignature):
        verify(HEADERS, BODY, [], AT)


PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.1",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450:4001:82a::200e",
    "64:ff9b::8.8.8.8",
    "2002:808:808::1",
]
NOT_PUBLIC = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.255",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.1.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "64:ff9b::127.0.0.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:a00:1::",
    "2002:a9fe:a9fe::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%eth0",
    "2606:4700:4700::1111%eth0",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
]


@pytest.mark.parametrize("text", PUBLIC)
def test_an_address_of_the_public_internet_may_be_dialled(text: str) -> None:
    assert address.permitted([text], []) == [text]


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_any_other_address_may_not(text: str) -> None:
    assert address.permitted([text], []) == []


@given(st.ip_addresses())
def test_nothing_is_public_that_python_knows_not_to_be(one: IPv4Address | IPv6Address) -> None:
    if not one.is_global or one.is_multicast or one.is_reserved or one.is_loopback:
        assert not address.is_public(one) or one in address._NAT64


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_counts_for_what_it_is(inner: IPv4Address) -> None:
    for outer in (f"64:ff9b::{inner}", str(IPv6Address(0x2002 << 112 | int(inner) << 80))):
        assert address.is_public(ip_address(outer)) == address.is_public(inner)
    assert not address.is_public(IPv6Address(f"::ffff:{inner}"))


def test_networks_can_be_allowed_and_nothing_beside_them() -> None:
    allowed = address.networks(["10.1.0.0/16", "fd00::/8", "127.0.0.1"])
    given = ["10.1.2.3", "10.2.0.1", "fd12::1", "fe80::1", "127.0.0.1", "127.0.0.2", "8.8.8.8"]
    assert address.permitted(given, allowed) == ["10.1.2.3", "fd12::1", "127.0.0.1", "8.8.8.8"]
    for bad in ("10.1.2.3/16", "localhost", ""):
        with pytest.raises(InvalidInput):
            address.networks([bad])


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("120", 120.0),
        (" 7 ", 7.0),
        ("0", 5.0),
        ("9" * 400, 43200.0),
        ("Thu, 25 Feb 2021 15:04:10 GMT", 120.0),
        ("Thu, 25 Feb 2021 15:04:10 -0000", 120.0),
        ("Thu, 25 Feb 2010 15:04:10 GMT", 5.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 43200.0),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("", None),
    ],
)
def test_retry_after_is_honoured_within_bounds(value: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(value, AT) == seconds
