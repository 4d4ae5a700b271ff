"""An extension whose `bash` blocks in a thread for good, and so cannot be stopped."""

EXTENSION = """
import threading
import trio
from pi_trio import Tool, ToolResult

def extend(api):
    async def block(call_id, args, on_update):
        await on_update(ToolResult("blocked from now on"))
        await trio.to_thread.run_sync(threading.Event().wait)

    api.register_tool(Tool(name="bash", description="Blocks.", parameters={"type": "object"}, execute=block))
"""
