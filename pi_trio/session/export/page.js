"use strict";
// Without this script everything is on the page. With it: one branch at a time, and a search over all.
const articles = new Map([...document.querySelectorAll("article")].map((each) => [each.id, each]));
const rows = new Map([...document.querySelectorAll("nav a")].map((each) => [each.hash.slice(1), each]));
const children = new Map();
for (const [id, article] of articles) {
  if ("withdrawn" in article.dataset) continue; // no branch goes on there
  const parent = article.dataset.parent ?? "";
  children.set(parent, [...(children.get(parent) ?? []), id]);
}
const box = document.querySelector("input[type=search]");
let texts = null;

function show(wanted) {
  for (const [id, article] of articles) article.classList.toggle("off", !wanted.has(id));
}

function branch(id) {
  const path = new Set();
  for (let at = id; articles.has(at) && !path.has(at); at = articles.get(at).dataset.parent) path.add(at);
  for (let at = id; (at = children.get(at)?.at(-1)) && !path.has(at); ) path.add(at);
  return path;
}

function go() {
  const named = decodeURIComponent(location.hash.slice(1));
  const id = articles.has(named) ? named : document.body.dataset.leaf;
  if (!articles.has(id)) return;
  const path = branch(id);
  show(path);
  for (const [each, row] of rows) {
    row.classList.toggle("on", path.has(each));
    row.classList.remove("off");
  }
  if (id === named) articles.get(id).scrollIntoView();
}

function search() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return go();
  texts ??= new Map([...articles].map(([id, article]) => [id, article.textContent.toLowerCase()]));
  const found = new Set();
  for (const [id, text] of texts) if (words.every((word) => text.includes(word))) found.add(id);
  show(found);
  for (const [id, row] of rows) row.classList.toggle("off", !found.has(id));
}

let waiting;
box.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, 120); });
addEventListener("hashchange", () => { box.value = ""; go(); });
document.querySelector("input[type=checkbox]").addEventListener("change", (event) => {
  document.body.classList.toggle("records", event.target.checked);
});
addEventListener("keydown", (event) => {
  if (event.key === "/" && event.target !== box) { event.preventDefault(); box.focus(); }
  if (event.key === "Escape" && event.target === box) { box.value = ""; search(); }
});
go();
