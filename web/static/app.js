// What the pages do beyond plain links and forms. Without this file everything still works.
"use strict";

(() => {
  const main = document.getElementById("main");
  const stale = document.getElementById("stale");
  const fresh = document.getElementById("fresh");

  // Buttons that need a script stay hidden without one.
  function reveal(root) {
    for (const b of root.querySelectorAll("[data-copy][hidden], [data-copy-of][hidden], [data-dialog][hidden]")) b.hidden = false;
    for (const all of root.querySelectorAll("[data-all]")) all.hidden = false;
  }

  // copy works on a page over plain HTTP, too, where there is no clipboard API.
  async function copy(text) {
    if (navigator.clipboard && window.isSecureContext) {
      try {
        await navigator.clipboard.writeText(text);
        return true;
      } catch { /* as if there were none */ }
    }
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "sr";
    (document.querySelector("dialog[open]") || document.body).append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-copy-of], [data-dialog], [data-close]");
    if (!button) return;
    if (button.dataset.copy !== undefined || button.dataset.copyOf) {
      const of = button.dataset.copyOf;
      const text = of ? [...document.querySelectorAll(of)].map((e) => e.textContent).join("\n") : button.dataset.copy;
      button.classList.toggle("copied", await copy(text));
      button.focus();
      setTimeout(() => button.classList.remove("copied"), 1500);
    } else if (button.dataset.dialog) {
      const dialog = document.getElementById(button.dataset.dialog);
      if (dialog) {
        event.preventDefault();
        dialog.showModal();
      }
    } else if (button.dataset.close !== undefined) {
      event.preventDefault();
      button.closest("dialog")?.close();
    }
  });

  // A menu closes when something else is clicked, and with Escape.
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });

  // Selected rows: a box for all, and how many there are.
  function counted(form) {
    const boxes = [...form.querySelectorAll("input[name=id]")];
    const chosen = boxes.filter((b) => b.checked).length;
    for (const out of form.querySelectorAll("[data-chosen]")) out.textContent = chosen ? chosen + " selected" : "Select rows to act on them";
    for (const b of form.querySelectorAll("[data-needs-rows]")) b.disabled = chosen === 0;
    for (const all of form.querySelectorAll("[data-all]")) {
      all.checked = chosen > 0 && chosen === boxes.length;
      all.indeterminate = chosen > 0 && chosen < boxes.length;
    }
    for (const b of boxes) b.closest("tr").classList.toggle("chosen", b.checked);
  }
  let last = null;
  document.addEventListener("click", (event) => {
    const box = event.target;
    if (!(box instanceof HTMLInputElement) || box.type !== "checkbox" || !box.form) return;
    if (box.dataset.all !== undefined) {
      for (const b of box.form.querySelectorAll("input[name=id]")) b.checked = box.checked;
    } else if (box.name === "id") {
      const boxes = [...box.form.querySelectorAll("input[name=id]")];
      if (event.shiftKey && last && boxes.includes(last)) {
        const [from, to] = [boxes.indexOf(last), boxes.indexOf(box)].sort((a, b) => a - b);
        for (const b of boxes.slice(from, to + 1)) b.checked = box.checked;
      }
      last = box;
    }
    counted(box.form);
  });

  // Rows do not move under a selection, an open dialog, a marked text or the focus of the keyboard.
  function busy(within = main) {
    if (document.hidden || within.querySelector("details[open]") || document.querySelector("dialog[open], details.menu[open], main input[name=id]:checked")) return true;
    const marked = window.getSelection();
    if (marked && !marked.isCollapsed && main.contains(marked.anchorNode)) return true;
    return main.contains(document.activeElement) && document.activeElement !== main;
  }
  let news = 0; // what came while the page could not change
  function told() {
    if (fresh) {
      fresh.hidden = false;
      fresh.classList.toggle("waits", busy());
      fresh.querySelector("[data-fresh]").textContent = !busy() ? "live" : news > 0 ? "paused, " + news + " new" : "paused";
    }
  }
  let since = new Date();
  document.addEventListener("htmx:beforeRequest", (event) => {
    told();
    if (main.contains(event.target) && busy(event.target)) event.preventDefault();
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (main.contains(event.target) && busy(event.target)) event.detail.shouldSwap = false;
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const status = event.detail.xhr?.status ?? 0;
    const failed = !event.detail.successful;
    stale.hidden = !failed;
    const why = stale.querySelector("[data-why]");
    why.textContent = status === 403 ? "You may not look at this any more." : status === 404 ? "It is not here any more." : status === 429 ? "The node is asked too often."
      : status >= 400 && status < 500 ? "The node refuses to show this." : "The node does not answer.";
    if (failed) stale.querySelector("[data-since]").textContent = "as of " + since.toISOString().slice(11, 19) + " UTC";
    else since = new Date();
  });
  document.addEventListener("htmx:afterSwap", (event) => reveal(event.target));

  // For live.js, which hears when something changed.
  window.holdfast = { busy: () => busy(), told: (n) => { news = n; told(); } };

  document.documentElement.classList.add("scripted");
  reveal(document);
  for (const form of document.querySelectorAll("form[data-rows]")) counted(form);
  told();
})();
