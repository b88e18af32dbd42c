package definitions

import (
	"slices"
	"strings"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// read fills the machine from the document. Whatever is wrong, it goes on, so
// that one pass tells all.
func (l *loader) read(n *node) {
	if n.isNull() {
		l.report(pos{1, 1}, finding{rule: ruleEmptyDocument}, "the file is empty; a definition begins with `machine: NAME`")
		return
	}
	root := l.object(n, "a definition", "machine", "doc", "table", "fields", "initial", "create", "states",
		"groups", "transitions", "unique", "journal")
	if root == nil {
		return
	}
	if name := l.require(root, "machine"); name != nil {
		if text, ok := l.text(name, "machine"); ok {
			l.m.Name = text
			l.checkMachineName(name)
		}
	}
	l.m.Doc = l.prose(root)
	l.readTable(root)
	l.readFields(root)
	l.readStates(root)
	l.readInitial(root)
	l.readGroups(root)
	l.readCreate(root)
	l.readJournal(root)
	l.checkJournalApart(root)
	l.readUnique(root)
	l.readTransitions(root)
	l.checkGenerated(root)
	l.checkTransitions(root)
	l.checkTimeouts(root)
	l.finish()
	l.checkGraph()
}

func (l *loader) readCreate(root *object) {
	n := root.get("create")
	if n == nil {
		return
	}
	o := l.object(n, "create", "emit")
	if o == nil {
		return
	}
	if emit := l.require(o, "emit"); emit != nil {
		l.m.Create.Emit = l.readTopic(emit)
	}
}

func (l *loader) readTopic(n *node) string {
	text, ok := l.text(n, "emit")
	if ok {
		l.checkStored(n, text, "emit")
	}
	return text
}

// defaultJournal is the table of a journal that names none: in the schema of the
// business table, where that names one.
func defaultJournal(table string) string {
	const name = "fsm_journal"
	if schema, _, qualified := strings.Cut(table, "."); qualified {
		return schema + "." + name
	}
	return name
}

func (l *loader) readJournal(root *object) {
	l.m.Journal = Journal{Enabled: true, Table: defaultJournal(l.m.Table.Name)}
	n := root.get("journal")
	if n == nil {
		return
	}
	if n.kind == scalar {
		on, ok := boolean(n)
		if !ok {
			l.wrongBoolean(n, "journal is true, false or {table: NAME}")
		}
		if ok && !on {
			l.m.Journal = Journal{}
		}
		return
	}
	o := l.object(n, "journal", "table")
	if o == nil {
		return
	}
	if table := l.require(o, "table"); table != nil {
		if text, ok := l.text(table, "journal.table"); ok {
			l.m.Journal.Table = text
			l.checkTable(table, "journal table")
		}
	}
}

func (l *loader) checkJournalApart(root *object) {
	name := l.m.Table.Name
	if l.m.Journal.Enabled && name != "" && folded(name) == folded(l.m.Journal.Table) {
		l.report(root.get("table").at, finding{rule: ruleNameCollision, name: name}, "the business table and the journal are both the table %q", name)
	}
}

func (l *loader) readUnique(root *object) {
	n := root.get("unique")
	if n == nil {
		return
	}
	if n.kind != sequence {
		l.wrongType(n, "unique is a list of keys, each a list of fields, as in [[order_no]]")
		return
	}
	if len(n.items) == 0 {
		l.report(n.at, finding{rule: ruleEmptyList}, "unique names no key")
	}
	seen := map[string]pos{}
	for _, item := range n.items {
		if item.kind != sequence {
			l.wrongType(item, "a unique key is a list of fields, as in [[order_no]]")
			continue
		}
		key := l.readUniqueKey(item)
		if len(key) == 0 {
			continue
		}
		sorted := strings.Join(slices.Sorted(slices.Values(key)), " ")
		if first, again := seen[sorted]; again {
			l.report(item.at, finding{rule: ruleDuplicateEntry, name: sorted}, "the unique key of %s stands in line %d and again in line %d", sorted, first.line, item.at.line)
			continue
		}
		seen[sorted] = item.at
		l.m.Unique = append(l.m.Unique, key)
	}
}

func (l *loader) readUniqueKey(n *node) []string {
	var key []string
	for _, item := range l.list(n, "a unique key") {
		f, ok := l.field(item.value)
		if !ok {
			l.unknownField(item)
			continue
		}
		if f.Type == expr.JSON || f.Type == expr.Bytes {
			l.report(item.at, finding{rule: ruleUniqueType, name: f.Name}, "%s is %s, which databases do not compare alike; it cannot be part of a unique key", f.Name, f.Type)
		}
		key = append(key, f.Name)
	}
	return key
}
