// Notices: what a request lost, or what the gateway added to it.

/** The kind of badge: a notice that is no warning says what was added, not what was lost. */
export const badge = (notice) => (notice.warning === false ? "plain" : "warn");
