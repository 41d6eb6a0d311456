// Package web serves the operator pages: what admin offers, for people, as HTML of the node itself.
//
// Promised: every action is a plain form and works without script. Nothing is loaded from elsewhere, and a
// strict Content-Security-Policy allows no script and no style in a page. A GET changes nothing. All text from
// messages, names and errors is shown as text; characters that would act, such as one that reverses the
// reading direction, are shown by their number. Every link begins with the base path.
//
// Who may see a page or do something is decided by the gate and by admin, not here. A page shows what the
// caller may not do, disabled and with the reason.
//
// To add a page: a template in templates, which defines "main"; a function that returns its view; and a line
// in Pages.pages. A page that belongs into the navigation has a line in rail as well.
package web
