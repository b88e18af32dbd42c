package definitions

import (
	"iter"
	"slices"
	"strings"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// draft is a transition with the places its parts were written at.
type draft struct {
	Transition
	at     pos // of its name
	object *object
	args   map[string]pos
	arg    map[string]int // into Args
	env    *expr.Env
	// If the args could not be read, any name may be one of them.
	lostArgs bool
	set      map[string]pos // fields written at transition level
	moves    []*moveDraft
	// An assignment, of the transition or of a move, could not be read: it may have
	// written any field from any arg.
	lostSet bool
}

// moveDraft is a move with its places.
type moveDraft struct {
	Move
	at       pos            // of its `from`
	set      map[string]pos // fields written at move level
	targetAt []pos
	unknown  bool // a source is
}

func (l *loader) readTransitions(root *object) {
	l.wildcards = map[string][]string{}
	if n := l.require(root, "transitions"); n == nil || n.kind != mapping {
		l.lostTarget, l.lostSource = true, true
	}
	names := newNameSet("transition", GoName)
	for _, p := range l.members(root, "transitions") {
		l.checkStateName(p.key, "a transition")
		names.add(l, p.key.value, p.key.at)
		l.drafts = append(l.drafts, l.readTransition(p))
	}
}

func (l *loader) readTransition(p pair) *draft {
	d := &draft{Transition: Transition{Name: p.key.value, Duplicates: DuplicatesAccept}, at: p.key.at, args: map[string]pos{}}
	d.object = l.object(p.value, "a transition", "doc", "from", "to", "args", "when", "set", "key", "identity",
		"emit", "duplicates", "guard", "effect", "after", "moves")
	if d.object == nil {
		l.lostTarget, l.lostSource = true, true
		return d
	}
	d.Doc = l.prose(d.object)
	l.readArgs(d)
	d.When = l.readWhen(d.object, d)
	d.Set, d.set = l.readSet(d.object, d)
	l.readMoves(d)
	l.readKey(d)
	l.readIdentity(d)
	l.readDuplicates(d)
	if n := d.object.get("emit"); n != nil {
		d.Emit = l.readTopic(n)
	}
	d.Guard = l.readHook(d.object, "guard")
	d.Effect = l.readHook(d.object, "effect")
	d.After = l.readHook(d.object, "after")
	return d
}

func (l *loader) readHook(o *object, key string) string {
	n := o.get(key)
	if n == nil {
		return ""
	}
	text, ok := l.text(n, key)
	if !ok || !l.checkIdentifier(n, "a hook") {
		return ""
	}
	return text
}

func (l *loader) readArgs(d *draft) {
	n := d.object.get("args")
	d.lostArgs = n != nil && n.kind != mapping
	names := newNameSet("arg", GoName)
	for _, p := range l.members(d.object, "args") {
		l.checkFieldName(p.key, "an arg")
		names.add(l, p.key.value, p.key.at)
		d.args[p.key.value] = p.key.at
		d.Args = append(d.Args, l.readArg(p))
	}
	slices.SortFunc(d.Args, func(a, b Arg) int { return strings.Compare(a.Name, b.Name) })
	d.arg = make(map[string]int, len(d.Args))
	for i := range d.Args {
		d.arg[d.Args[i].Name] = i
	}
}

// Arg is that of [Transition] where many are looked for.
func (d *draft) Arg(name string) (*Arg, bool) {
	i, ok := d.arg[name]
	if !ok {
		return nil, false
	}
	return &d.Args[i], true
}

func (l *loader) readArg(p pair) Arg {
	a := Arg{Name: p.key.value, Scale: -1}
	if p.value.kind == scalar {
		short := *p.value
		short.value, a.Optional = strings.CutSuffix(short.value, "?")
		if _, known := expr.ParseType(short.value); !known {
			short.value = p.value.value // report it as written
		}
		a.Type = l.readType(&short, "optional: true")
		return a
	}
	o := l.object(p.value, "an arg", "type", "optional", "secret", "doc", "scale")
	if o == nil {
		return a
	}
	a.Doc = l.prose(o)
	a.Optional = l.flag(o, "optional")
	a.Secret = l.flag(o, "secret")
	if n := l.require(o, "type"); n != nil {
		a.Type = l.readType(n, "optional: true")
	}
	a.Scale = l.readScale(o, a.Type)
	if a.Secret && !l.m.Journal.Enabled {
		l.needsJournal(o.at("secret"), "secret")
	}
	return a
}

func (l *loader) needsJournal(at pos, key string) {
	l.report(at, finding{rule: ruleNeedsJournal, name: key}, "%s needs a journal, and this machine says `journal: false`", key)
}

func (l *loader) readWhen(o *object, d *draft) *expr.Expr {
	n := o.get("when")
	if n == nil {
		return nil
	}
	return l.condition(n, d)
}

// readSet reads assignments, sorted by field.
func (l *loader) readSet(o *object, d *draft) ([]Assignment, map[string]pos) {
	places := map[string]pos{}
	var list []Assignment
	for _, p := range l.members(o, "set") {
		f, ok := l.assigned(p.key)
		if !ok {
			l.assignment(p.value, d, nil)
			d.lostSet = true
			continue
		}
		places[f.Name] = p.key.at
		if e := l.assignment(p.value, d, f); e != nil {
			list = append(list, Assignment{Field: f.Name, Value: e})
		} else {
			d.lostSet = true
		}
	}
	slices.SortFunc(list, func(a, b Assignment) int { return strings.Compare(a.Field, b.Field) })
	return list, places
}

// assigned finds the field a `set` writes.
func (l *loader) assigned(key *node) (*Field, bool) {
	t := &l.m.Table
	if f, ok := l.field(key.value); ok {
		return f, true
	}
	for _, own := range [][2]string{{"id", t.ID.Name}, {"status", t.Status.Name}, {"version", t.Version}} {
		if key.value == own[0] || key.value == own[1] {
			l.report(key.at, finding{rule: ruleSetOwnColumn, name: key.value}, "%s is written by the engine; a transition cannot set it", own[0])
			return nil, false
		}
	}
	l.unknownField(key)
	return nil, false
}

func (l *loader) readDuplicates(d *draft) {
	n := d.object.get("duplicates")
	if n == nil {
		return
	}
	text, ok := l.text(n, "duplicates")
	if !ok {
		return
	}
	values := []string{string(DuplicatesAccept), string(DuplicatesOwn), string(DuplicatesRefuse)}
	if !slices.Contains(values, text) {
		near := l.nearest(text, slices.Values(values))
		l.report(n.at, finding{ruleBadValue, text, near}, "duplicates is %s, not %q", strings.Join(values, ", "), text)
		return
	}
	d.Duplicates, d.DuplicatesSaid = Duplicates(text), true
	if d.Duplicates == DuplicatesOwn && !l.m.Journal.Enabled {
		l.report(n.at, finding{rule: ruleOwnWithoutLog, name: d.Name}, "without a journal nobody knows who entered a state: `own` is the same as `refuse`")
	}
}

func (l *loader) readKey(d *draft) {
	n := d.object.get("key")
	if n == nil {
		return
	}
	if !l.m.Journal.Enabled {
		l.needsJournal(d.object.at("key"), "key")
	}
	if n.kind == scalar && n.value == "required" {
		d.Key.Required = true
		return
	}
	for _, part := range l.entries(n, "key") {
		if name, ok := l.keyPart(part, d); ok {
			d.Key.Args = append(d.Key.Args, name)
		}
	}
}

func (l *loader) keyPart(n *node, d *draft) (string, bool) {
	name, qualified := strings.CutPrefix(n.value, "args.")
	if !qualified {
		near := l.nearest(n.value, slices.Values([]string{"required"}))
		if _, ok := d.args[n.value]; ok {
			near = "args." + n.value
		}
		l.report(n.at, finding{ruleBadKey, n.value, near}, "%q is no part of a key: a key is `required` or made of args.NAME; row columns change between a request and its repeat", n.value)
		return "", false
	}
	arg, ok := d.Arg(name)
	if !ok {
		l.unknownArg(d, n, name)
		return "", false
	}
	if arg.Secret {
		l.report(n.at, finding{rule: ruleSecretKey, name: name}, "%s is secret, and keys are stored in the journal", name)
	}
	if arg.Optional {
		l.report(n.at, finding{rule: ruleOptionalKey, name: name}, "%s is optional, and a key needs all its parts", name)
	}
	return name, true
}

func (d *draft) argNames() iter.Seq[string] {
	return each(d.Args, func(a *Arg) string { return a.Name })
}

func (l *loader) readIdentity(d *draft) {
	n := d.object.get("identity")
	if n == nil {
		return
	}
	written := d.writtenArgs()
	for _, item := range l.list(n, "identity") {
		arg, ok := d.Arg(item.value)
		if !ok {
			l.unknownIdentity(d, item)
			continue
		}
		if arg.Secret {
			l.report(item.at, finding{rule: ruleSecretIdentity, name: arg.Name}, "%s is secret, and an identity is compared with what the journal holds", arg.Name)
		}
		d.Identity = append(d.Identity, arg.Name)
		if !written[arg.Name] && !d.lostSet && len(d.moves) > 0 {
			l.report(item.at, finding{rule: ruleIdentityNotWritten, name: arg.Name}, "identity %s is not kept: write it to a field with set: {FIELD: args.%s}", arg.Name, arg.Name)
		}
	}
}

func (l *loader) unknownIdentity(d *draft, n *node) {
	if bare, qualified := strings.CutPrefix(n.value, "args."); qualified && d.args[bare] != (pos{}) {
		l.report(n.at, finding{ruleUnknownArg, n.value, bare}, "identity lists args by their bare names, not as %q", n.value)
		return
	}
	l.unknownArg(d, n, n.value)
}

func (l *loader) unknownArg(d *draft, n *node, name string) {
	if !d.lostArgs {
		l.unknown(n, ruleUnknownArg, "arg", name, d.argNames())
	}
}

// writtenArgs returns the args that every move keeps in a field of its own.
func (d *draft) writtenArgs() map[string]bool {
	written := map[string]bool{}
	for arg := range copied(d.Set) {
		written[arg] = true
	}
	moves := map[string]int{} // that write an arg
	for _, m := range d.moves {
		for arg := range copied(m.Set) {
			moves[arg]++
			written[arg] = written[arg] || moves[arg] == len(d.moves)
		}
	}
	return written
}

// copied returns the args that assignments write as they are.
func copied(set []Assignment) map[string]bool {
	args := make(map[string]bool, len(set))
	for _, a := range set {
		if a.Value.Root != nil && a.Value.Root.Op == expr.OpArg {
			args[a.Value.Root.Name] = true
		}
	}
	return args
}
