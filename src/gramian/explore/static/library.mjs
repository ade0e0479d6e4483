/* The library behind the page, by a websocket: one question at a time. Of questions with one key that wait,
   the last is asked, and those before it are forgotten: their promises never come to anything. */

export class Library {
  constructor(changed) {
    this.changed = changed;
    this.state = document.documentElement.dataset.library === "here" ? "connecting" : "none";
    this.waiting = new Map();
    this.asked = null;
    this.count = 0;
    this.version = "";
    if (this.state === "connecting") this.connect();
  }

  get here() {
    return this.state === "here";
  }

  connect() {
    const address = new URL("ws", location.href);
    address.protocol = "ws:";
    address.hash = "";
    this.socket = new WebSocket(address);
    this.socket.addEventListener("message", (event) => this.heard(JSON.parse(event.data)));
    this.socket.addEventListener("close", () => {
      this.state = "gone";
      this.asked?.no(new Error("The library has gone."));
      this.asked = null;
      this.changed(null);
    });
  }

  heard(said) {
    if (said.hello) {
      this.state = "here";
      this.version = said.hello.version;
      this.changed(said.hello);
      return;
    }
    const { asked } = this;
    if (!asked || (said.id !== null && said.id !== asked.id)) return;
    this.asked = null;
    if (said.error !== undefined) asked.no(new Error(said.error));
    else asked.yes(said.answer);
    this.next();
  }

  ask(key, message) {
    return new Promise((yes, no) => {
      this.waiting.delete(key);
      this.waiting.set(key, { message, yes, no });
      this.next();
    });
  }

  next() {
    if (this.asked || !this.here || !this.waiting.size) return;
    const [key, one] = this.waiting.entries().next().value;
    this.waiting.delete(key);
    this.asked = { ...one, id: ++this.count };
    this.socket.send(JSON.stringify({ ...one.message, id: this.count }));
  }

  /** What is being computed is given up, with what there is. */
  stop() {
    if (this.here) this.socket.send(JSON.stringify({ id: ++this.count, ask: "stop" }));
  }
}
