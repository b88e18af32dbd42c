package definitions

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"gopkg.in/yaml.v3"
)

// document reads the source as one YAML document. It returns nil if there is
// nothing to go on with.
func document(src *source, f *findings) *node {
	root, problem := decode(src.text, f)
	if problem != nil {
		reportSyntax(src, problem, f)
		return nil
	}
	if root == nil {
		return nil
	}
	c := converter{findings: f, anchors: map[*yaml.Node]*node{}}
	n := c.convert(root, 1)
	if c.aborted {
		return nil
	}
	return n
}

// leadingLine is put before the text and taken off every position: yaml.v3 leaves
// the line out of an error in the first line, and takes it from elsewhere.
const leadingLine = "#\n"

// decode parses text and refuses everything but exactly one document.
func decode(text string, f *findings) (root *yaml.Node, problem *syntaxError) {
	defer func() {
		if r := recover(); r != nil {
			root, problem = nil, &syntaxError{message: "the YAML parser gave up: " + fmt.Sprint(r)}
		}
	}()
	dec := yaml.NewDecoder(strings.NewReader(leadingLine + text))
	var first, second yaml.Node
	if err := dec.Decode(&first); errors.Is(err, io.EOF) {
		f.report(pos{1, 1}, finding{rule: ruleEmptyDocument}, "the file is empty; a definition begins with `machine: NAME`")
		return nil, nil
	} else if err != nil {
		return nil, newSyntaxError(err)
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		f.report(placeOf(&second), finding{rule: ruleSeveralDocuments}, "a second YAML document begins here; one file describes one machine")
		return nil, nil
	case !errors.Is(err, io.EOF):
		return nil, newSyntaxError(err)
	}
	return first.Content[0], nil
}

func placeOf(n *yaml.Node) pos { return pos{max(n.Line-1, 1), max(n.Column, 1)} }

// converter turns yaml.v3's nodes into ours, and keeps the limits that yaml.v3
// does not keep when it decodes to nodes.
type converter struct {
	*findings
	anchors map[*yaml.Node]*node // nil while the anchor's node is being read
	added   int                  // nodes added by aliases
	text    int                  // bytes added by aliases
	aborted bool
}

// abort reports a limit that was passed; nothing after it is read.
func (c *converter) abort(at pos, rule, format string, args ...any) *node {
	if !c.aborted {
		c.report(at, finding{rule: rule}, format, args...)
	}
	c.aborted = true
	return &node{at: at}
}

func (c *converter) convert(y *yaml.Node, depth int) *node {
	at := placeOf(y)
	if depth > maxNesting {
		return c.abort(at, ruleTooDeep, "more than %d levels of nesting", maxNesting)
	}
	if y.Kind == yaml.AliasNode {
		return c.alias(y, depth)
	}
	if y.Anchor != "" {
		c.anchors[y] = nil
	}
	c.checkTag(y, at)
	n := &node{at: at, size: 1}
	switch y.Kind {
	case yaml.MappingNode:
		n.kind = mapping
		c.mapping(n, y, depth)
	case yaml.SequenceNode:
		n.kind = sequence
		for _, item := range y.Content {
			if c.aborted {
				break
			}
			n.items = append(n.items, n.adopt(c.convert(item, depth+1)))
		}
	default:
		n.value, n.style = y.Value, styleOf(y)
		if isLocalTag(y) {
			n.value = taggedText(y) // reported, and read as what was meant
		}
		n.length = len(n.value)
		c.checkText(n)
	}
	if y.Anchor != "" {
		c.anchors[y] = n
	}
	return n
}

func (n *node) adopt(child *node) *node {
	n.size = min(n.size+child.size, maxAliasNodes*100)
	n.length = min(n.length+child.length, maxAliasText*100)
	n.height = max(n.height, child.height+1)
	return child
}

func (c *converter) alias(y *yaml.Node, depth int) *node {
	at := placeOf(y)
	target := c.anchors[y.Alias]
	if target == nil {
		return c.abort(at, ruleAliasCycle, "the alias *%s stands inside what it names", y.Value)
	}
	if c.added += target.size; c.added > maxAliasNodes {
		return c.abort(at, ruleTooManyAliases, "expanding aliases adds more than %d nodes", maxAliasNodes)
	}
	if c.text += target.length; c.text > maxAliasText {
		return c.abort(at, ruleTooManyAliases, "expanding aliases adds more than 1 MiB of text")
	}
	c.repeats()
	if depth+target.height > maxNesting {
		return c.abort(at, ruleTooDeep, "more than %d levels of nesting", maxNesting)
	}
	return target
}

func (c *converter) mapping(n *node, y *yaml.Node, depth int) {
	seen := make(map[string]pos, len(y.Content)/2)
	for i := 0; i+1 < len(y.Content) && !c.aborted; i += 2 {
		key := n.adopt(c.convert(y.Content[i], depth+1))
		value := n.adopt(c.convert(y.Content[i+1], depth+1))
		if !c.checkKey(key) {
			continue
		}
		if first, ok := seen[key.value]; ok {
			c.report(key.at, finding{rule: ruleDuplicateKey, name: key.value},
				"%q stands in line %d and again in line %d", key.value, first.line, key.at.line)
			continue
		}
		seen[key.value] = key.at
		n.pairs = append(n.pairs, pair{key, value})
	}
}

func (c *converter) checkKey(key *node) bool {
	switch {
	case key.kind != scalar:
		c.report(key.at, finding{rule: ruleWrongType}, "a key must be a name, not %s", key.called())
	case key.isNull():
		c.report(key.at, finding{rule: ruleNull, name: key.value}, "a key is missing here; if a name is meant, put it in quotes: %q", nameOr(key.value, "null"))
	case key.style == plain && key.value == "<<":
		c.report(key.at, finding{rule: ruleMergeKey, name: "<<"}, "merge keys (<<) are not part of the format; an alias may stand for a whole value")
	default:
		return true
	}
	return false
}

func nameOr(name, other string) string {
	if name == "" || name == "~" {
		return other
	}
	return name
}

// checkTag refuses explicit tags that would change what a value is.
func (c *converter) checkTag(y *yaml.Node, at pos) {
	if y.Style&yaml.TaggedStyle == 0 {
		return // resolved from the text, not written
	}
	tag := y.ShortTag()
	if y.Kind == yaml.ScalarNode && tag == "!!str" || tag == "!!map" || tag == "!!seq" {
		return
	}
	if y.Kind == yaml.ScalarNode && isCoreTag(tag) {
		untagged := *y
		untagged.Tag, untagged.Style = "", 0
		if untagged.ShortTag() == tag {
			return
		}
	}
	if isLocalTag(y) {
		c.report(at, finding{rule: ruleUnknownTag, name: tag}, "the tag %s is not part of the format; a text that begins with ! is put in quotes: %q", tag, taggedText(y))
		return
	}
	c.report(at, finding{rule: ruleUnknownTag, name: tag}, "the tag %s is not part of the format; remove it", tag)
}

// isLocalTag reports a tag of one !, before a plain text or none: what YAML makes of an
// expression such as !paid.
func isLocalTag(y *yaml.Node) bool {
	return y.Kind == yaml.ScalarNode && y.Style&yaml.TaggedStyle != 0 && styleOf(y) == plain && strings.HasPrefix(y.Tag, "!") && !strings.HasPrefix(y.Tag, "!!")
}

func taggedText(y *yaml.Node) string { return strings.TrimSpace(y.Tag + " " + y.Value) }

func isCoreTag(tag string) bool {
	return tag == "!!int" || tag == "!!bool" || tag == "!!float" || tag == "!!null"
}

// checkText looks at characters that were written as escapes.
func (c *converter) checkText(n *node) {
	if n.style != doubleQuoted {
		return
	}
	for _, r := range n.value {
		if isInvisible(r) || r == '\u2028' || r == '\u2029' {
			c.report(n.at, finding{rule: ruleInvisible, name: codePoint(r)}, "the text holds the invisible character %s; remove it", codePoint(r))
			return
		}
	}
}

func styleOf(y *yaml.Node) style {
	switch {
	case y.Style&yaml.DoubleQuotedStyle != 0:
		return doubleQuoted
	case y.Style&yaml.SingleQuotedStyle != 0:
		return singleQuoted
	case y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return block
	}
	return plain
}
