package definitions

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// jsonWriter writes JSON, one member of the outer two levels a line.
type jsonWriter struct {
	buf   bytes.Buffer
	depth int
	count []int // members written at each open level
	limit int   // bytes behind which texts are left out; 0: none
}

func (w *jsonWriter) open(bracket byte) {
	w.buf.WriteByte(bracket)
	w.count = append(w.count, 0)
	w.depth++
}

func (w *jsonWriter) close(bracket byte) {
	w.depth--
	if w.depth < 2 && w.count[w.depth] > 0 {
		w.newline()
	}
	w.count = w.count[:w.depth]
	w.buf.WriteByte(bracket)
}

func (w *jsonWriter) newline() {
	w.buf.WriteByte('\n')
	w.buf.WriteString(strings.Repeat("  ", w.depth))
}

// next begins a member of the open object or array.
func (w *jsonWriter) next() {
	last := w.depth - 1
	if w.count[last] > 0 {
		w.buf.WriteByte(',')
		if w.depth > 2 {
			w.buf.WriteByte(' ')
		}
	}
	w.count[last]++
	if w.depth <= 2 {
		w.newline()
	}
}

func (w *jsonWriter) key(name string) {
	w.next()
	w.string(name)
	w.buf.WriteString(": ")
}

// string writes s so that JSON and YAML read the same text, and so that what
// cannot be seen is written as an escape.
func (w *jsonWriter) string(s string) {
	if w.limit > 0 && w.buf.Len() > w.limit {
		return
	}
	w.buf.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			w.buf.WriteByte('\\')
			w.buf.WriteRune(r)
		case r == '\n':
			w.buf.WriteString(`\n`)
		case r == '\t':
			w.buf.WriteString(`\t`)
		case isControl(r) || isInvisible(r):
			fmt.Fprintf(&w.buf, `\u%04x`, r)
		default:
			w.buf.WriteRune(r)
		}
	}
	w.buf.WriteByte('"')
}

func (w *jsonWriter) textMember(key, value string) {
	if value != "" {
		w.key(key)
		w.string(value)
	}
}

func (w *jsonWriter) flagMember(key string, value bool) {
	if value {
		w.key(key)
		w.buf.WriteString("true")
	}
}

func (w *jsonWriter) listMember(key string, list []string) {
	if len(list) > 0 {
		w.key(key)
		w.list(list)
	}
}

func (w *jsonWriter) list(list []string) {
	w.open('[')
	for _, s := range list {
		w.next()
		w.string(s)
	}
	w.close(']')
}

func (w *jsonWriter) scaleMember(scale int) {
	if scale >= 0 {
		w.key("scale")
		w.buf.WriteString(strconv.Itoa(scale))
	}
}

// oneOrList writes a single entry bare, as the short forms have it.
func (w *jsonWriter) oneOrList(list []string) {
	if len(list) == 1 {
		w.string(list[0])
		return
	}
	w.list(list)
}
