"""An agent runtime on trio: the public API, by name.

Names are loaded when they are first used, so that importing the package, as every command
line does, costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pi_trio.agent import Agent as Agent
    from pi_trio.compaction.plan import CompactionSettings as CompactionSettings
    from pi_trio.errors import BusyError as BusyError
    from pi_trio.errors import ConfigError as ConfigError
    from pi_trio.errors import ConnectionLostError as ConnectionLostError
    from pi_trio.errors import LimitError as LimitError
    from pi_trio.errors import PiError as PiError
    from pi_trio.errors import ProviderError as ProviderError
    from pi_trio.errors import SessionError as SessionError
    from pi_trio.errors import StorageError as StorageError
    from pi_trio.errors import SummaryError as SummaryError
    from pi_trio.errors import UsageError as UsageError
    from pi_trio.events import AgentEnd as AgentEnd
    from pi_trio.events import AgentEvent as AgentEvent
    from pi_trio.events import AgentSettled as AgentSettled
    from pi_trio.events import AgentStart as AgentStart
    from pi_trio.events import Gap as Gap
    from pi_trio.events import InputReturned as InputReturned
    from pi_trio.events import MessageEnd as MessageEnd
    from pi_trio.events import MessageStart as MessageStart
    from pi_trio.events import MessageUpdate as MessageUpdate
    from pi_trio.events import ToolExecutionEnd as ToolExecutionEnd
    from pi_trio.events import ToolExecutionStart as ToolExecutionStart
    from pi_trio.events import ToolExecutionUpdate as ToolExecutionUpdate
    from pi_trio.events import TurnEnd as TurnEnd
    from pi_trio.events import TurnStart as TurnStart
    from pi_trio.extensions.api import ExtensionApi as ExtensionApi
    from pi_trio.harness.harness import AgentHarness as AgentHarness
    from pi_trio.harness.harness import HarnessOptions as HarnessOptions
    from pi_trio.harness.limits import Limits as Limits
    from pi_trio.harness.opening import open_harness as open_harness
    from pi_trio.harness.retry import RetryPolicy as RetryPolicy
    from pi_trio.harness.runtime import open_runtime as open_runtime
    from pi_trio.hub import Outbox as Outbox
    from pi_trio.llm.auth import Credential as Credential
    from pi_trio.llm.protocol import Model as Model
    from pi_trio.llm.protocol import ModelCost as ModelCost
    from pi_trio.llm.protocol import StreamFunction as StreamFunction
    from pi_trio.llm.protocol import StreamOptions as StreamOptions
    from pi_trio.llm.protocol import TextDelta as TextDelta
    from pi_trio.llm.protocol import ThinkingDelta as ThinkingDelta
    from pi_trio.llm.registry import Models as Models
    from pi_trio.loop.abandon import abandoned as abandoned
    from pi_trio.loop.hooks import AfterToolCallContext as AfterToolCallContext
    from pi_trio.loop.hooks import AfterToolCallResult as AfterToolCallResult
    from pi_trio.loop.hooks import AgentContext as AgentContext
    from pi_trio.loop.hooks import BeforeToolCallContext as BeforeToolCallContext
    from pi_trio.loop.hooks import BeforeToolCallResult as BeforeToolCallResult
    from pi_trio.loop.hooks import FinishTurnResult as FinishTurnResult
    from pi_trio.loop.hooks import Hooks as Hooks
    from pi_trio.loop.hooks import RequestContext as RequestContext
    from pi_trio.loop.hooks import TurnContext as TurnContext
    from pi_trio.loop.hooks import TurnUpdate as TurnUpdate
    from pi_trio.messages import AgentMessage as AgentMessage
    from pi_trio.messages import AssistantMessage as AssistantMessage
    from pi_trio.messages import ImageContent as ImageContent
    from pi_trio.messages import TextContent as TextContent
    from pi_trio.messages import ThinkingContent as ThinkingContent
    from pi_trio.messages import ToolCall as ToolCall
    from pi_trio.messages import ToolResultMessage as ToolResultMessage
    from pi_trio.messages import UserMessage as UserMessage
    from pi_trio.remote.interface import Runtime as Runtime
    from pi_trio.remote.interface import Snapshot as Snapshot
    from pi_trio.resources.config import RuntimeConfig as RuntimeConfig
    from pi_trio.session.session import Session as Session
    from pi_trio.tool import Tool as Tool
    from pi_trio.tool import ToolResult as ToolResult
    from pi_trio.typed_tool import ToolContext as ToolContext
    from pi_trio.typed_tool import function_tool as function_tool

_HOMES = {
    "agent": ["Agent"],
    "compaction.plan": ["CompactionSettings"],
    "errors": [
        "BusyError",
        "ConfigError",
        "ConnectionLostError",
        "LimitError",
        "PiError",
        "ProviderError",
        "SessionError",
        "StorageError",
        "SummaryError",
        "UsageError",
    ],
    "events": [
        "AgentEnd",
        "AgentEvent",
        "AgentSettled",
        "AgentStart",
        "Gap",
        "InputReturned",
        "MessageEnd",
        "MessageStart",
        "MessageUpdate",
        "ToolExecutionEnd",
        "ToolExecutionStart",
        "ToolExecutionUpdate",
        "TurnEnd",
        "TurnStart",
    ],
    "extensions.api": ["ExtensionApi"],
    "harness.harness": ["AgentHarness", "HarnessOptions"],
    "harness.limits": ["Limits"],
    "harness.opening": ["open_harness"],
    "harness.retry": ["RetryPolicy"],
    "harness.runtime": ["open_runtime"],
    "hub": ["Outbox"],
    "llm.auth": ["Credential"],
    "llm.protocol": ["Model", "ModelCost", "StreamFunction", "StreamOptions", "TextDelta", "ThinkingDelta"],
    "llm.registry": ["Models"],
    "loop.abandon": ["abandoned"],
    "loop.hooks": [
        "AfterToolCallContext",
        "AfterToolCallResult",
        "AgentContext",
        "BeforeToolCallContext",
        "BeforeToolCallResult",
        "FinishTurnResult",
        "Hooks",
        "RequestContext",
        "TurnContext",
        "TurnUpdate",
    ],
    "messages": [
        "AgentMessage",
        "AssistantMessage",
        "ImageContent",
        "TextContent",
        "ThinkingContent",
        "ToolCall",
        "ToolResultMessage",
        "UserMessage",
    ],
    "remote.interface": ["Runtime", "Snapshot"],
    "resources.config": ["RuntimeConfig"],
    "session.session": ["Session"],
    "tool": ["Tool", "ToolResult"],
    "typed_tool": ["ToolContext", "function_tool"],
}

_MODULE_OF = {name: f"pi_trio.{module}" for module, names in _HOMES.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
