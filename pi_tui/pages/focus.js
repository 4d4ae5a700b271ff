// Keys go to the terminal as soon as there is something in it: textual.js waits for a click.
new MutationObserver((_, observer) => {
  if (document.body.classList.contains("-first-byte")) {
    observer.disconnect();
    document.querySelector(".xterm-helper-textarea").focus();
  }
}).observe(document.body, { attributeFilter: ["class"] });
