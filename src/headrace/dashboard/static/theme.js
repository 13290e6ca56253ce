// Before anything is painted: the theme that this viewer has chosen, if it is not that of the system.
try {
  const chosen = localStorage.getItem('headrace-theme');
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch { /* without storage the system's theme it is */ }
