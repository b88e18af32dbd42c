// Package codegen turns a [definitions.Machine] into files: a typed Go package, and
// pictures of the machine.
//
// It is pure. [Generate] returns files and never touches the disk; writing them,
// and comparing them with what is there, is the command's work ([Compare] decides).
// The same machine gives the same bytes: no time, path, tool version or map order
// reaches the output.
//
// Exported names of generated code are stable, the templates and the view structs
// that feed them are not. All naming, quoting and sorting happens in the views;
// the templates hold only text, range, if and field access.
package codegen
