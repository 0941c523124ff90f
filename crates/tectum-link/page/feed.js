// The connection to the run.

const RETRY_MS = 1000;

/** Calls `on[type](message)` for texts, `on.frames(words)` for batches, `on.closed()` when lost. */
export class Feed {
  constructor(on) {
    this.on = on;
    this.hasEnded = false;
    this.connect();
  }

  connect() {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    this.socket = new WebSocket(`${scheme}//${location.host}/live`);
    this.socket.binaryType = "arraybuffer";
    this.socket.addEventListener("message", ({ data }) => this.#receive(data));
    this.socket.addEventListener("close", ({ reason }) => {
      this.on.closed(this.hasEnded, reason);
      if (!this.hasEnded) setTimeout(() => this.connect(), RETRY_MS);
    });
  }

  /** Sends an order, such as `{ type: "pause" }`. */
  send(order) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(order));
  }

  #receive(data) {
    if (data instanceof ArrayBuffer) {
      this.on.frames(new Uint32Array(data));
      return;
    }
    const message = JSON.parse(data);
    if (message.type === "end") this.hasEnded = true;
    this.on[message.type]?.(message);
  }
}
