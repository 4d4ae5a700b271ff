"""Helpers for testing programs that embed the runtime."""

from pi_trio.testing.recorder import Recorder as Recorder
from pi_trio.testing.scripted import Call as Call
from pi_trio.testing.scripted import Hang as Hang
from pi_trio.testing.scripted import Pause as Pause
from pi_trio.testing.scripted import Recorded as Recorded
from pi_trio.testing.scripted import ScriptedModel as ScriptedModel
from pi_trio.testing.scripted import Stop as Stop
from pi_trio.testing.scripted import Text as Text
from pi_trio.testing.scripted import Think as Think
