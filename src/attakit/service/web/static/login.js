// The address that a first start prints holds a token behind #, which browsers do not send.
const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) {
  document.getElementById("token").value = token;
  document.querySelector(".login button").focus();
  history.replaceState(null, "", location.pathname + location.search);
}
