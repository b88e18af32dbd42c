package definitions

// kind is the shape of a node.
type kind uint8

const (
	scalar kind = iota
	mapping
	sequence
)

// node is a piece of the document: what yaml.v3 read, with aliases followed,
// and free of everything the format does not use.
type node struct {
	kind  kind
	at    pos
	value string // scalars: the text, never converted
	style style
	items []*node // sequences
	pairs []pair  // mappings, in order; keys are scalars and differ

	size   int // nodes in it, aliases expanded
	length int // bytes of text in it, likewise
	height int // levels in it
}

type pair struct{ key, value *node }

// style is how a scalar was written.
type style uint8

const (
	plain style = iota
	singleQuoted
	doubleQuoted
	block
)

// isNull reports whether YAML reads n as no value at all.
func (n *node) isNull() bool {
	if n.kind != scalar || n.style != plain {
		return false
	}
	switch n.value {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
}

// called describes n for a message.
func (n *node) called() string {
	switch {
	case n.kind == mapping:
		return "a mapping"
	case n.kind == sequence:
		return "a list"
	case n.isNull():
		return "nothing"
	}
	return "text"
}
