// The address that the first start prints has a token after #, which browsers do not send.
function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  document.getElementById("token").value = token;
  document.querySelector(".login button").focus();
  history.replaceState(null, "", location.pathname + location.search);
}

takeToken();
addEventListener("hashchange", takeToken); // the address was opened where this page was shown already
