// Questions to the server, each with the token from the address that weft printed.

const KEPT = "weft-workbench-token";

// The token leaves the address bar at once: pictures of the screen and bookmarks do not have it.
function findToken() {
  const given = new URLSearchParams(location.hash.slice(1));
  const token = given.get("token");
  if (token !== null) {
    sessionStorage.setItem(KEPT, token);
    given.delete("token");
    history.replaceState(null, "", `#${given}`);
  }
  return token ?? sessionStorage.getItem(KEPT) ?? "";
}

const token = findToken();

export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export async function ask(question, given = {}) {
  let answer;
  try {
    answer = await fetch(`/api/${question}`, {
      method: "POST",
      headers: { "Authorization": `Bearer ${token}`, "Content-Type": "application/json" },
      body: JSON.stringify(given),
    });
  } catch {
    throw new Refused("The workbench does not answer: it has ended, or the connection to it has.", 0);
  }
  if (answer.ok) return answer.json();
  const text = await answer.text();
  try {
    throw new Refused(JSON.parse(text).error, answer.status);
  } catch (error) {
    throw error instanceof Refused ? error : new Refused(text, answer.status);
  }
}
