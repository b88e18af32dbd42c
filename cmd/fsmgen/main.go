// Command fsmgen turns definitions of state machines into Go packages, and tells
// what is wrong with them. Run "fsmgen --help".
package main

import "os"

func main() {
	os.Exit(Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
