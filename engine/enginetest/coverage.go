package enginetest

import (
	"fmt"
	"strings"
)

// coverage says which edges were walked, and which were not.
func (w *walker) coverage() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d edges walked\n", len(w.search.found), len(w.graph.edges))
	for _, e := range w.graph.edges {
		mark := "walked    "
		if _, ok := w.search.found[e]; !ok {
			mark = "NOT WALKED"
		}
		fmt.Fprintf(&b, "  %s  %s\n", mark, e)
	}
	for _, s := range w.def.States {
		if _, ok := w.search.reached[s.Name]; !ok {
			fmt.Fprintf(&b, "  NOT REACHED  state %s\n", s.Name)
		}
	}
	return b.String()
}
