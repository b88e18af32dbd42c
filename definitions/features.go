package definitions

// unbuilt lists parts of the format that are read and checked but that the engine
// does not run yet: using one is a finding, so that what is unknown and what is
// not built are never confused. A part that is finished is taken off this list;
// nothing else changes.
//
// It is a variable for the tests of this package, which check the whole format.
var unbuilt = map[string]bool{
	"guard":  true,
	"effect": true,
	"after":  true,
}

// feature reports the use of a part that is not built.
func (l *loader) feature(at pos, name string) {
	if unbuilt[name] {
		l.report(at, finding{rule: ruleUnsupported, name: name}, "%s is part of the format, but this version of fsmgen cannot run it yet", name)
	}
}
