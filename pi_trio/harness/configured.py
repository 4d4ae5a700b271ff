"""What the flags and the settings say, in the harness's own terms."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain

from attrs import evolve, frozen

from pi_trio.compaction.plan import CompactionSettings
from pi_trio.errors import ConfigError
from pi_trio.harness.limits import Limits
from pi_trio.harness.options import HarnessOptions
from pi_trio.harness.retry import RetryPolicy
from pi_trio.llm.auth import Credential
from pi_trio.llm.protocol import Model, StreamFunction, StreamOptions
from pi_trio.remote.access import token_path, web_token_path
from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.settings import Compaction
from pi_trio.tool import Tool
from pi_trio.tools import READING_TOOLS, TOOL_NAMES, chosen_tools, coding_tools
from pi_trio.tools.environment import LocalEnvironment
from pi_trio.tools.policy import Policy

__all__ = ["ToolChoice", "gate_policy", "harness_options", "tool_choice"]


def gate_policy(config: RuntimeConfig, environment: LocalEnvironment) -> Policy:
    """Raises `ConfigError` for a rule that cannot be read."""
    rules = config.settings.gate
    try:
        return Policy(
            environment,
            config.mode or rules.mode,
            allow=rules.allow,
            deny=rules.deny,
            # The first may hold keys; who has one of the others can do what the gate forbids.
            secrets=[
                config.agent_dir / "models.json",
                token_path(config.agent_dir),
                web_token_path(config.agent_dir),
            ],
        )
    except ValueError as error:  # to go on without a rule that forbids something would be worse
        raise ConfigError(f"settings.json: gate: {error}") from None


@frozen
class ToolChoice:
    """The tools that there are, and the names of those that are offered while a branch says nothing."""

    tools: tuple[Tool, ...]
    active: tuple[str, ...]


def tool_choice(config: RuntimeConfig, environment: LocalEnvironment, policy: Policy) -> ToolChoice:
    """The tools of a session that works in this environment, each held to what it was allowed."""
    chosen = chosen_tools(config.settings.default_tools if config.tools is None else config.tools)
    if policy.mode == "read-only":
        chosen = tuple(name for name in READING_TOOLS if config.tools is None or name in chosen)
    if policy.mode == "read-only" or config.tools is not None:  # nobody may switch another on
        return ToolChoice(_checked_tools(environment, policy, chosen), chosen)
    names = dict.fromkeys((*chosen, *TOOL_NAMES))  # the chosen ones in the order of the choice
    return ToolChoice(_checked_tools(environment, policy, names), chosen)


def _checked_tools(environment: LocalEnvironment, policy: Policy, names: Iterable[str]) -> tuple[Tool, ...]:
    def checked(name: str) -> LocalEnvironment:
        return environment.checked(partial(policy.check, name), policy.unread)

    return tuple(chain.from_iterable(coding_tools(checked(name), [name]) for name in names))


def harness_options(
    config: RuntimeConfig,
    *,
    stream_function: Callable[[Model], StreamFunction],
    credential: Callable[[Model], Awaitable[Credential]],
    preflight: Callable[[Model], None],
    choice: ToolChoice,
    sections: Callable[[Sequence[Tool]], dict[str, str]],
) -> HarnessOptions:
    """How a session is worked on."""
    settings = config.settings
    retry = settings.retry
    return HarnessOptions(
        stream_function=stream_function,
        credential=credential,
        preflight=preflight,
        limits=_limits(config),
        tools=choice.tools,
        active_tool_names=choice.active,
        sections=sections,
        steering_mode=settings.steering_mode,
        follow_up_mode=settings.follow_up_mode,
        compaction=_compaction(settings.compaction),
        branch_reserve=settings.branch_summary.reserve_tokens,
        record_stream=settings.record_stream,
        max_parallel_tool_calls=settings.max_parallel_tool_calls,
        retry=RetryPolicy(
            enabled=retry.enabled,
            max_retries=retry.max_retries,
            base_delay=retry.base_delay_ms / 1000,
            max_delay=retry.max_agent_delay_ms / 1000,
            longest_wish=retry.provider.max_retry_delay_ms / 1000 or None,
        ),
        request=StreamOptions(
            cache_retention=config.cache_retention,
            idle_timeout=settings.http_idle_timeout_ms / 1000,
            proxy=settings.http_proxy,
        ),
        findings=tuple(_unknown_tools(config)),
    )


def _compaction(table: Compaction) -> CompactionSettings:
    base = CompactionSettings(
        enabled=table.enabled,
        reserve_tokens=table.reserve_tokens,
        keep_recent_tokens=table.keep_recent_tokens,
    )
    overrides = {
        reference: evolve(
            base,
            reserve_tokens=sizes.get("reserveTokens", base.reserve_tokens),
            keep_recent_tokens=sizes.get("keepRecentTokens", base.keep_recent_tokens),
        )
        for reference, sizes in table.model_overrides.items()
    }
    return evolve(base, overrides=overrides)


def _limits(config: RuntimeConfig) -> Limits:
    """Those of the command line win over those of the settings, one by one."""
    settings = config.settings
    return Limits(
        max_cost=settings.max_cost if config.max_cost is None else config.max_cost,
        max_steps=settings.max_steps if config.max_steps is None else config.max_steps,
    )


def _unknown_tools(config: RuntimeConfig) -> Iterator[str]:
    there_are = ", ".join(TOOL_NAMES)
    for name in chosen_tools(config.settings.default_tools):
        if config.tools is None and name not in TOOL_NAMES:
            yield f"settings.json: defaultTools: there is no tool {name!r}; there are {there_are}"
