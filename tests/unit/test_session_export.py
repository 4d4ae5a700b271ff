"""What leaves: lines that can come back, Markdown, and a page that runs nothing of the session's."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pi_trio.errors import StorageError
from pi_trio.messages import (
    AssistantMessage,
    BashExecutionMessage,
    ImageContent,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    ToolSchema,
    UserMessage,
)
from pi_trio.session import facts
from pi_trio.session.export.file import write_export
from pi_trio.session.export.lines import branch_jsonl
from pi_trio.session.export.markdown import branch_markdown
from pi_trio.session.export.masking import mask, mask_text
from pi_trio.session.export.page import tree_page
from pi_trio.session.repository import SessionRepository
from pi_trio.session.session import Session

EVIL = (
    '"><img src=x onerror=alert(1)></script><script>alert(2)</script><a href="javascript:alert(3)">\x1b[31m'
)


@pytest.fixture
def repository(tmp_path: Path) -> SessionRepository:
    return SessionRepository(tmp_path / "agent", tmp_path)


def rich(session: Session) -> Session:
    """Every kind of entry, a side branch, a label on it, a queue, an unknown entry."""
    session.append_model_change("p", "m")
    session.append(facts.fact(facts.INBOX_SPLICED, session.id))
    session.append_message(
        SystemMessage("Be good.", {"rules": "None."}, (ToolSchema("read", "Reads", {}),), ({"name": "bash"},))
    )
    first = session.append_message(UserMessage.of("first", [ImageContent("AAAA", "image/png")]))
    session.append_message(AssistantMessage((TextContent("sidetrack"),)))
    session.set_leaf_id(first.id)
    call = ToolCall("c", "bash", {"command": "ls -la"})
    session.append_message(
        AssistantMessage((ThinkingContent("hm"), TextContent("**yes**"), call), model="m-1")
    )
    session.append_message(ToolResultMessage("c", "bash", (TextContent("a ``` b\n" * 20),), is_error=True))
    session.append_message(BashExecutionMessage("pwd", "/p", 1))
    session.append_custom_message("note", "psst")
    session.append_custom_entry("state", {"n": 1})
    session.append_compaction("so far", first.id, 1000)
    session.append_branch_summary("was there", None)
    session.append_thinking_level_change("high")
    session.append_active_tools_change(["read"])
    session.append_context_edit(first.id, {"content": "other"})
    session.append_message(AssistantMessage((), stop_reason="error", error_message="no luck"))
    leaf = session.append_message(UserMessage.of("last"))
    session.append_label(leaf.id, "end")
    return session


# ------------------------------------------------------------------ lines


def test_export_import_export_gives_the_same_bytes(repository: SessionRepository, tmp_path: Path) -> None:
    session = rich(repository.create())
    exported = branch_jsonl(session)
    path = tmp_path / "out.jsonl"
    write_export(path, exported)
    again = Session.open(SessionRepository(tmp_path / "other", tmp_path).import_file(path))
    assert again.findings == []
    assert branch_jsonl(again) == exported
    assert again.build_context() == session.build_context()
    assert again.label_of(again.get_branch()[-2].id) == "end"
    kept = {session.line(head.id) for head in session.tree.branch(session.get_leaf_id())}
    assert len(set(exported.splitlines()[1:]) - kept) == 1  # what hung on the queue's fact hangs higher now


def test_recorded_files_go_out_and_come_back(shared: Path, tmp_path: Path) -> None:
    for path in sorted((shared / "sessions").glob("*/*.jsonl")):
        session = Session.open(path, writable=False)
        exported = branch_jsonl(session)
        (tmp_path / path.name).write_bytes(exported)
        again = Session.open(tmp_path / path.name)
        assert branch_jsonl(again) == exported, path.name
        assert again.build_context() == session.build_context(), path.name


# ------------------------------------------------------------------ Markdown


def test_markdown_has_what_was_said(repository: SessionRepository) -> None:
    session = rich(repository.create())
    session.append_session_name("A `name`")
    text = branch_markdown(session)
    assert text.startswith("# A `name`\n")
    for part in (
        "## User\n\nfirst",
        "**yes**",
        "> hm",
        "## bash failed\n\n````\n",
        "$ pwd",
        "so far",
        "no luck",
    ):
        assert part in text
    for part in ("sidetrack", "inbox/spliced", "AAAA"):
        assert part not in text
    assert "\x1b" not in branch_markdown(rich_in_evil(repository))


def rich_in_evil(repository: SessionRepository) -> Session:
    """SE-08: hostile text in every field that can have one."""
    session = repository.create()
    session.append_session_name(EVIL)
    session.append_model_change(EVIL, EVIL)
    session.append_message(SystemMessage(EVIL, {EVIL: EVIL}, (ToolSchema(EVIL, EVIL, {}),)))
    image = ImageContent(EVIL, EVIL)
    said = session.append_message(UserMessage.of(EVIL, [image, ImageContent("AAAA", EVIL)]))
    call = ToolCall(EVIL, EVIL, {EVIL: EVIL})
    content = (ThinkingContent(EVIL), TextContent(EVIL), call)
    session.append_message(
        AssistantMessage(content, model=EVIL, stop_reason="error", error_message=EVIL, extra={EVIL: EVIL})
    )
    session.append_message(ToolResultMessage(EVIL, EVIL, (TextContent(EVIL),)))
    session.append_custom_message(EVIL, EVIL)
    session.append_custom_entry(EVIL, EVIL)
    session.append_label(said.id, EVIL)
    return session


# ------------------------------------------------------------------ the page


class Page(HTMLParser):
    """What a browser would see of elements, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_a_withdrawn_prompt_is_a_record_of_the_page(repository: SessionRepository) -> None:
    """It is no branch: what follows is not indented, and no branch shows it."""
    session = repository.create()
    session.append_message(UserMessage.of("first"))
    answer = session.append_message(AssistantMessage((TextContent("yes"),)))
    gone = session.append_message(UserMessage.of("never mind"))
    session.set_leaf_id(answer.id)
    later = session.append_message(UserMessage.of("second"))
    session.append_message(AssistantMessage((TextContent("and yes"),)))
    page = Page(tree_page(session))
    kinds = {each["id"]: each["class"] for each in page.named("article")}
    assert (kinds[gone.id], kinds[later.id]) == ("record", "user")
    assert [each["id"] for each in page.named("article") if "data-withdrawn" in each] == [gone.id]
    assert "User: withdrawn before anything came of it" in page.texts
    assert not any("│" in text for text in page.texts)


def test_the_page_runs_and_loads_nothing_of_the_session(
    repository: SessionRepository, tmp_path: Path
) -> None:
    """SE-08."""
    session = rich_in_evil(repository)
    assert session.path is not None
    lines = session.path.read_text().splitlines()
    odd = {"type": EVIL, "id": EVIL, "parentId": None, "timestamp": EVIL, EVIL: EVIL}
    path = tmp_path / "evil.jsonl"
    header = {**json.loads(lines[0]), "cwd": EVIL, "timestamp": EVIL}
    path.write_text("\n".join([json.dumps(header), *lines[1:], json.dumps(odd)]))
    page = Page(tree_page(Session.open(path, writable=False)))
    plain = Page(tree_page(Session.in_memory("/p")))
    assert page.named("script") == plain.named("script") == [{}]
    assert len(page.named("style")) == 1
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in plain.tags} | {
        "a", "article", "h2", "h3", "b", "time", "div", "pre", "details", "summary"
    }  # fmt: skip
    for _, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("href", "src"):
            assert (attributes.get(name) or "#").startswith("#")
    policy = page.named("meta")[1]["content"]
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "unsafe" not in policy
    assert not any("\x1b" in text for text in page.texts)


def test_the_page_has_all_branches(repository: SessionRepository) -> None:
    session = rich(repository.create())
    page = Page(tree_page(session))
    articles = {each["id"]: each for each in page.named("article")}
    assert set(articles) == {head.id for head in session.heads if head.type != "leaf"}
    for entry_id, attributes in articles.items():
        assert entry_id is not None
        assert attributes["data-parent"] == (session.tree.parent(entry_id) or "")
    assert [each["href"] for each in page.named("a")] == [f"#{each}" for each in articles]
    assert page.named("body")[0]["data-leaf"] == session.get_leaf_id()
    assert [each["src"] for each in page.named("img")] == ["data:image/png;base64,AAAA"]
    text = "".join(page.texts)
    for part in ("sidetrack", "**yes**", "no luck", "so far", "end", "20 lines"):
        assert part in text


def test_the_page_asks_for_nothing_outside() -> None:
    html = tree_page(Session.in_memory("/p"))
    assert not re.search(r"https?:|//[a-z]|@import|url\(", html)


# ------------------------------------------------------------------ secrets

SECRETS = [
    "sk-ant-api03-abcdefghijklmnop",
    "sk-test-1234567890",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "AKIAABCDEFGHIJKLMNOP",
    "xoxb-123456789012-abcdefgh",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefghijkl",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_keys_are_masked(secret: str) -> None:
    """SE-17."""
    for text in (f"use {secret} now", f"KEY={secret}", f'"{secret}"', f"Authorization: Bearer {secret}"):
        assert secret not in mask_text(text)
        assert "[masked]" in mask_text(text)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("OPENAI_API_KEY=abcdef123456", "OPENAI_API_KEY=[masked]"),
        ('{"password": "hunter22"}', '{"password": "[masked]"}'),
        ("postgres://me:hunter22@host/db", "postgres://me:[masked]@host/db"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nx", "[masked]\nx"),
        ("http://localhost:8080/path", "http://localhost:8080/path"),
        ("the token count is 1234567", "the token count is 1234567"),
        ("a task-list, a risk-free desk-top", "a task-list, a risk-free desk-top"),
    ],
)
def test_named_secrets_are_masked_and_ordinary_text_is_not(text: str, masked: str) -> None:
    assert mask_text(text) == masked


def test_masking_is_quick_and_leaves_images_alone() -> None:
    image = {"type": "image", "data": "sk-abcdefghijkl", "mimeType": "image/png"}
    assert mask({"a": [image, "sk-abcdefghijkl"]}) == {"a": [image, "[masked]"]}
    mask_text("token" * 50_000)
    mask_text("a-" * 50_000 + "=")
    mask_text("a" * 100_000 + "://" + "b" * 100_000)


def test_every_form_can_be_masked(repository: SessionRepository) -> None:
    """SE-17."""
    session = repository.create()
    for secret in SECRETS:
        session.append_message(UserMessage.of(f"use {secret}"))
        session.append_custom_entry("state", {"key": secret})
    for exported in (
        branch_jsonl(session, masked=True).decode(),
        branch_markdown(session, masked=True),
        tree_page(session, masked=True),
    ):
        assert not any(secret in exported for secret in SECRETS)
        assert exported.count("[masked]") >= len(SECRETS)


# ------------------------------------------------------------------ files


def test_an_export_overwrites_nothing_by_accident(tmp_path: Path) -> None:
    """SE-05, SE-06."""
    mine, link, out = tmp_path / "mine", tmp_path / "link", tmp_path / "out.md"
    mine.write_text("mine")
    link.symlink_to(mine)
    for path in (mine, link):
        with pytest.raises(StorageError, match="there already"):
            write_export(path, b"new")
    write_export(link, b"new", replace=True)
    assert mine.read_text() == "mine"
    assert (link.read_text(), link.is_symlink()) == ("new", False)
    write_export(out, b"new")
    assert out.stat().st_mode & 0o777 == 0o600
    with pytest.raises(StorageError):
        write_export(tmp_path / "no" / "folder", b"new")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "mine", "out.md"]
