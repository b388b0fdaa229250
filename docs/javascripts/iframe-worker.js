// Browsers refuse to start a worker from a file. There, the search runs in a hidden frame instead, by the same messages.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      this.ready = new Promise((resolve) => this.frame.addEventListener("load", resolve, { once: true }));
      window.addEventListener("message", (event) => {
        if (event.source !== inside) return;
        const answer = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(answer);
        if (this.onmessage) this.onmessage(answer);
      });
      inside.document.open();
      inside.document.write(
        "<script>" +
          "window.postMessage = (data) => parent.postMessage(data, '*');" +
          "window.importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((done) => {" +
          "const script = document.createElement('script'); script.src = url; script.onload = done;" +
          "document.body.appendChild(script); })), Promise.resolve());" +
          "</scr" + "ipt><body><script src='" + url + "'></scr" + "ipt></body>"
      );
      inside.document.close();
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
