// The search runs in a web worker, which browsers refuse to pages that are opened from disk.
// There it runs in a hidden frame instead. The site generator looks for this file's name.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      // As with a real worker, messages are copies and arrive later.
      inside.postMessage = (message) => {
        const data = structuredClone(message);
        setTimeout(() => this.onmessage?.(new MessageEvent("message", { data })));
      };
      const script = inside.document.createElement("script");
      script.src = new URL(url, location.href);
      this.loaded = new Promise((resolve) => script.addEventListener("load", resolve));
      inside.document.body.append(script);
    }

    async postMessage(message) {
      const data = structuredClone(message);
      await this.loaded;
      this.frame.contentWindow?.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
