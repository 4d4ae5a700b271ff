"""Which model a session begins with, and what a person should know of it before money is spent."""

from __future__ import annotations

from pathlib import Path

from pi_trio.errors import ConfigError
from pi_trio.llm.protocol import Model, ThinkingLevel
from pi_trio.llm.registry import ModelChoice, Models
from pi_trio.llm.thinking import LEVELS, clamp_level
from pi_trio.resources.config import RuntimeConfig
from pi_trio.session.session import Session

__all__ = ["choose_level", "choose_model", "notice_of", "replacements"]


def choose_model(config: RuntimeConfig, models: Models, session: Session) -> ModelChoice:
    """The flag wins over what the branch used, which wins over the settings and the default."""
    settings = config.settings
    if config.demo:
        return ModelChoice(models.get_model("demo/demo").model)
    if config.model is not None:
        return models.get_model(config.model)
    remembered = session.branch_settings().model
    wishes = [
        "/".join(remembered) if remembered else None,
        "/".join(filter(None, (settings.default_provider, settings.default_model))) or None,
    ]
    for wish in filter(None, wishes):
        try:
            choice = models.get_model(wish)
        except ConfigError:
            continue  # the notice names the model that is used instead
        if models.key_source(choice.model.provider):
            return choice
    return ModelChoice(models.default_model())


def choose_level(config: RuntimeConfig, session: Session, choice: ModelChoice) -> ThinkingLevel:
    """What goes with the model wins, then the flag, what the branch used, and the settings."""
    said = session.branch_settings().thinking
    remembered = next((level for level in LEVELS if level == said), None)
    level = choice.thinking_level or config.thinking_level or remembered
    return clamp_level(choice.model, level or config.settings.default_thinking_level)


def replacements(config: RuntimeConfig, session: Session, cwd: Path, model: Model) -> list[str]:
    """What a session was used with that is not there any more, and what takes its place."""
    said = []
    if session.cwd and not Path(session.cwd).is_dir():
        said.append(f"The folder of this session, {session.cwd}, is gone: tools work in {cwd}.")
    remembered = session.branch_settings().model
    if remembered is not None and config.model is None and not config.demo:
        wish = "/".join(remembered)
        if wish != model.reference:
            gone = f"The model of this session, {wish}, cannot be used now"
            said.append(f"{gone}: {model.reference} takes its place.")
    return said


def notice_of(config: RuntimeConfig, models: Models, model: Model) -> str:
    """The model, where its key comes from, and what it costs: before anything is spent."""
    if model.provider == "demo":
        why = "" if config.demo else " · no key was found for any provider"
        return f"{model.reference}{why} · free, no network"
    source = "key that was passed" if config.api_key else models.key_source(model.provider)
    price = "price unknown"
    if model.cost is not None and not model.cost.input and not model.cost.output:
        price = "free"
    elif model.cost is not None:
        price = f"${model.cost.input:g} in, ${model.cost.output:g} out per million tokens"
    return f"{model.reference} · {source or 'no key found'} · {price}"
