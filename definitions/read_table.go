package definitions

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

func (l *loader) readTable(root *object) {
	t := &l.m.Table
	*t = Table{ID: Column{"id", expr.String}, Status: Column{"status", expr.String}, Version: "version"}
	n := l.require(root, "table")
	if n == nil {
		return
	}
	o := l.object(n, "table", "name", "id", "status", "version")
	if o == nil {
		return
	}
	if name := l.require(o, "name"); name != nil {
		if text, ok := l.text(name, "table.name"); ok {
			t.Name = text
			l.checkTable(name, "table")
		}
	}
	owned := ownColumns{at: map[string]pos{}}
	l.readColumn(o, "id", &t.ID, &owned)
	l.readColumn(o, "status", &t.Status, &owned)
	if version := o.get("version"); version != nil {
		if text, ok := l.text(version, "table.version"); ok && l.checkColumn(version, text, "column") {
			t.Version = text
			owned.at["version"] = version.at
		}
	}
	l.checkOwnColumns(o, &owned)
}

// ownColumns remembers where the engine's columns were named.
type ownColumns struct{ at map[string]pos }

// readColumn reads an id or status column, in its short or its long form.
func (l *loader) readColumn(table *object, key string, c *Column, owned *ownColumns) {
	n := table.get(key)
	if n == nil {
		return
	}
	owned.at[key] = n.at
	if n.kind == scalar {
		if text, ok := l.text(n, "table."+key); ok && l.checkColumn(n, text, "column") {
			c.Name = text
		}
		return
	}
	o := l.object(n, "table."+key, "column", "type")
	if o == nil {
		return
	}
	if column := o.get("column"); column != nil {
		if text, ok := l.text(column, "column"); ok && l.checkColumn(column, text, "column") {
			c.Name = text
		}
	}
	if typ := o.get("type"); typ != nil {
		if text, ok := l.text(typ, "type"); ok {
			l.readColumnType(typ, text, key, c)
		}
	}
}

func (l *loader) readColumnType(n *node, text, key string, c *Column) {
	switch text {
	case "string":
		c.Type = expr.String
	case "int":
		c.Type = expr.Int
	default:
		near := l.nearest(text, slices.Values([]string{"string", "int"}))
		l.report(n.at, finding{ruleUnknownType, text, near}, "the %s column is string or int, not %q", key, text)
	}
}

func (l *loader) checkOwnColumns(o *object, owned *ownColumns) {
	t := &l.m.Table
	seen := map[string]string{}
	for _, c := range []struct{ key, column string }{{"id", t.ID.Name}, {"status", t.Status.Name}, {"version", t.Version}} {
		if other, again := seen[folded(c.column)]; again {
			at, ok := owned.at[c.key]
			if !ok {
				at = owned.at[other]
			}
			l.report(at, finding{rule: ruleDuplicateColumn, name: c.column}, "%s and %s are both the column %q", other, c.key, c.column)
			continue
		}
		seen[folded(c.column)] = c.key
	}
}

func (l *loader) readFields(root *object) {
	l.fieldAt = map[string]pos{}
	if n := root.get("fields"); n != nil && n.kind != mapping {
		l.lostFields = true
	}
	names := newNameSet("field", GoName)
	for _, p := range l.members(root, "fields") {
		if !l.checkFieldName(p.key, "a field") {
			l.fieldAt[p.key.value] = p.key.at // known, so that its uses are no findings of their own
		}
		f := l.readField(p)
		names.add(l, p.key.value, p.key.at)
		l.fieldAt[f.Name] = p.key.at
		l.m.Fields = append(l.m.Fields, f)
	}
	slices.SortFunc(l.m.Fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	l.fieldIndex = make(map[string]int, len(l.m.Fields))
	for i := range l.m.Fields {
		l.fieldIndex[l.m.Fields[i].Name] = i
	}
	l.checkFieldColumns()
}

// field is [Machine.Field] where many are looked for.
func (l *loader) field(name string) (*Field, bool) {
	i, ok := l.fieldIndex[name]
	if !ok {
		return nil, false
	}
	return &l.m.Fields[i], true
}

func (l *loader) readField(p pair) Field {
	f := Field{Name: p.key.value, Column: p.key.value, Scale: -1}
	o := l.object(p.value, "a field", "type", "column", "doc", "scale", "nullable", "default")
	if o == nil {
		return f
	}
	f.Doc = l.prose(o)
	f.Nullable = l.flag(o, "nullable")
	if n := l.require(o, "type"); n != nil {
		f.Type = l.readType(n, "nullable: true")
	}
	if n := o.get("column"); n != nil {
		if text, ok := l.text(n, "column"); ok {
			f.Column = text
		}
	}
	f.Scale = l.readScale(o, f.Type)
	f.Default = l.readDefault(o, f)
	at := p.key
	if n := o.get("column"); n != nil {
		at = n
	}
	l.checkColumn(at, f.Column, "column")
	return f
}

// readType reads the name of a type; optionalBy is what makes such a thing
// optional, where the user wrote a question mark.
func (l *loader) readType(n *node, optionalBy string) expr.Type {
	text, ok := l.text(n, "type")
	if !ok {
		return expr.Invalid
	}
	typ, ok := expr.ParseType(text)
	if ok {
		return typ
	}
	if bare, found := strings.CutSuffix(text, "?"); found {
		if _, ok := expr.ParseType(bare); ok {
			l.report(n.at, finding{ruleUnknownType, text, bare}, "%q is the short form of an optional arg; write %s here", text, optionalBy)
			return expr.Invalid
		}
	}
	l.report(n.at, finding{ruleUnknownType, text, l.nearest(text, slices.Values(expr.Types()))},
		"unknown type %q; types are %s", text, strings.Join(expr.Types(), ", "))
	return expr.Invalid
}

func (l *loader) readScale(o *object, typ expr.Type) int {
	n := o.get("scale")
	if n == nil {
		return -1
	}
	text, ok := l.text(n, "scale")
	if !ok {
		return -1
	}
	scale, err := strconv.Atoi(text)
	switch {
	case err != nil || scale < 0 || scale > 6 || strconv.Itoa(scale) != text:
		l.report(n.at, finding{rule: ruleBadValue, name: text}, "scale is a number of digits from 0 to 6, not %q", text)
		return -1
	case typ != expr.Decimal && typ != expr.Invalid:
		l.report(o.at("scale"), finding{rule: ruleBadValue, name: text}, "only a decimal has a scale, not a %s", typ)
		return -1
	}
	return scale
}

func (l *loader) readDefault(o *object, f Field) *Default {
	n := o.get("default")
	if n == nil {
		return nil
	}
	text, ok := l.text(n, "default")
	if !ok || f.Type == expr.Invalid {
		return nil
	}
	if text == "now()" && f.Type == expr.Time {
		return &Default{Text: text, Now: true}
	}
	value, err := expr.ParseDefault(f.Type, f.Scale, text)
	if err != nil {
		l.report(n.at, finding{rule: ruleBadDefault, name: text}, "the default %q of %s cannot be read as %s: %v", text, f.Name, f.Type, err)
		return nil
	}
	return &Default{Text: text, Value: value}
}

// ownColumn says which of the engine's columns this is, if it is one.
func (l *loader) ownColumn(column string) string {
	t := l.m.Table
	for _, own := range [][2]string{{t.Version, "version"}, {t.Status.Name, "status"}, {t.ID.Name, "id"}} {
		if folded(own[0]) == folded(column) {
			return own[1]
		}
	}
	return ""
}

// checkFieldColumns holds the columns of fields apart from each other and from
// the engine's.
func (l *loader) checkFieldColumns() {
	fields := map[string]string{}
	byPlace := slices.SortedFunc(slices.Values(l.m.Fields), func(a, b Field) int {
		return comparePos(l.fieldAt[a.Name], l.fieldAt[b.Name])
	})
	for _, f := range byPlace {
		column := folded(f.Column)
		if key := l.ownColumn(f.Column); key != "" {
			l.report(l.fieldAt[f.Name], finding{rule: ruleDuplicateColumn, name: f.Name}, "the column %q is the table's %s, which the engine reads and writes; it is no field", f.Column, key)
			continue
		}
		if other, again := fields[column]; again {
			l.report(l.fieldAt[f.Name], finding{rule: ruleDuplicateColumn, name: f.Name}, "the fields %q and %q are both the column %q", other, f.Name, f.Column)
			continue
		}
		fields[column] = f.Name
	}
}

func (l *loader) unknownField(n *node) {
	if !l.lostFields {
		l.unknown(n, ruleUnknownField, "field", n.value, l.fieldNames())
	}
}

// fieldNames returns the names of all fields, sorted.
func (l *loader) fieldNames() iter.Seq[string] {
	return each(l.m.Fields, func(f *Field) string { return f.Name })
}
