package definitions

import "github.com/fsmgen/fsmgen/definitions/expr"

// Rule describes one kind of finding.
type Rule struct {
	ID      string
	Warning bool
	// Summary says what the rule holds a definition to.
	Summary string
}

// The ids of all rules.
const (
	ruleTooLarge         = "too-large"
	ruleNotUTF8          = "not-utf8"
	ruleControl          = "control-character"
	ruleInvisible        = "invisible-character"
	ruleSyntax           = "syntax"
	ruleEmptyDocument    = "empty-document"
	ruleSeveralDocuments = "several-documents"
	ruleTooDeep          = "nesting-too-deep"
	ruleTooManyAliases   = "too-many-aliases"
	ruleAliasCycle       = "alias-cycle"
	ruleTooManyEdges     = "too-many-edges"
	ruleUnknownTag       = "unknown-tag"
	ruleMergeKey         = "merge-key"
	ruleDuplicateKey     = "duplicate-key"
	ruleDuplicateEntry   = "duplicate-entry"
	ruleNull             = "null-value"
	ruleWrongType        = "wrong-type"
	ruleUnknownKey       = "unknown-key"
	ruleMissingKey       = "missing-key"
	ruleEmptyList        = "empty-list"
	ruleEmptyText        = "empty-text"
	ruleBadValue         = "bad-value"

	ruleBadName         = "bad-name"
	ruleNotNFC          = "not-nfc"
	ruleReservedName    = "reserved-name"
	ruleNameCollision   = "name-collision"
	ruleDuplicateColumn = "duplicate-column"
	ruleDuplicateValue  = "duplicate-value"
	ruleMissingValue    = "missing-value"

	ruleUnknownState      = "unknown-state"
	ruleUnknownGroup      = "unknown-group"
	ruleUnknownField      = "unknown-field"
	ruleUnknownArg        = "unknown-arg"
	ruleUnknownTransition = "unknown-transition"
	ruleUnknownType       = "unknown-type"
	ruleBadDefault        = "bad-default"
	ruleUniqueType        = "unique-type"

	ruleNoSource           = "no-source"
	ruleMovesAndFrom       = "moves-and-from"
	ruleColumnSetTwice     = "column-set-twice"
	ruleSetOwnColumn       = "set-engine-column"
	ruleBadKey             = "bad-key"
	ruleIdentityNotWritten = "identity-not-written"
	ruleSecretKey          = "secret-in-key"
	ruleOptionalKey        = "optional-in-key"
	ruleSecretIdentity     = "secret-in-identity"
	ruleNeedsJournal       = "needs-journal"
	ruleTimeoutFire        = "timeout-cannot-fire"

	ruleUnreachableState    = "unreachable-state"
	ruleDeadEnd             = "dead-end"
	ruleFinalLeft           = "final-state-left"
	ruleAmbiguousMoves      = "ambiguous-moves"
	ruleUnreachableBranch   = "unreachable-branch"
	ruleUnconditionalBranch = "unconditional-branch-before-another"
	ruleSelfMoveReads       = "self-move-reads-row"

	ruleSelfMove        = "self-move-without-key"
	ruleChain           = "chain-without-key"
	ruleMixedEntry      = "mixed-entry"
	ruleTimeoutNotFired = "timeout-not-fired"
	ruleOwnWithoutLog   = "own-without-journal"
)

var rules = [...]Rule{
	{ID: ruleTooLarge, Summary: "A definition is at most 1 MiB, with at most 150,000 lines and list entries, also when it is written out in full."},
	{ID: ruleNotUTF8, Summary: "A definition is UTF-8, with or without a byte order mark."},
	{ID: ruleControl, Summary: "Control characters other than tab and line break are not allowed."},
	{ID: ruleInvisible, Summary: "Invisible and bidirectional characters are not allowed; joiners are, in docs and comments."},
	{ID: ruleSyntax, Summary: "A definition is valid YAML."},
	{ID: ruleEmptyDocument, Summary: "A definition is not empty."},
	{ID: ruleSeveralDocuments, Summary: "A file holds one YAML document."},
	{ID: ruleTooDeep, Summary: "Mappings and lists are nested at most 100 levels deep."},
	{ID: ruleTooManyAliases, Summary: "Expanding aliases adds at most 10,000 nodes and 1 MiB of text."},
	{ID: ruleAliasCycle, Summary: "An alias does not stand inside what it names."},
	{ID: ruleTooManyEdges, Summary: "All moves together have at most 1,000,000 sources, groups and \"*\" expanded."},
	{ID: ruleUnknownTag, Summary: "YAML tags are not part of the format."},
	{ID: ruleMergeKey, Summary: "Merge keys (<<) are not part of the format."},
	{ID: ruleDuplicateKey, Summary: "A key stands once in a mapping."},
	{ID: ruleDuplicateEntry, Summary: "An entry stands once in a list."},
	{ID: ruleNull, Summary: "Where a value is due, there is one."},
	{ID: ruleWrongType, Summary: "A value has the shape its key asks for."},
	{ID: ruleUnknownKey, Summary: "Only keys of the format are used."},
	{ID: ruleMissingKey, Summary: "Required keys are present."},
	{ID: ruleEmptyList, Summary: "A list that must name something is not empty."},
	{ID: ruleEmptyText, Summary: "A text that must say something is not empty."},
	{ID: ruleBadValue, Summary: "A value is one of those its key allows."},

	{ID: ruleBadName, Summary: "Names keep to the characters and length their kind allows."},
	{ID: ruleNotNFC, Summary: "Names are in Unicode normal form C."},
	{ID: ruleReservedName, Summary: "A name does not collide with generated code or the expression language."},
	{ID: ruleNameCollision, Summary: "Names of one kind differ, also as Go identifiers and after case folding."},
	{ID: ruleDuplicateColumn, Summary: "Every column belongs to one field or to the engine, also after case folding."},
	{ID: ruleDuplicateValue, Summary: "Names, values and aliases of states differ, also after case folding and trimming."},
	{ID: ruleMissingValue, Summary: "With a status column of type int every state has a value."},

	{ID: ruleUnknownState, Summary: "A state that is named is declared."},
	{ID: ruleUnknownGroup, Summary: "A group that is named is declared."},
	{ID: ruleUnknownField, Summary: "A field that is named is declared."},
	{ID: ruleUnknownArg, Summary: "An arg that is named is declared by the transition."},
	{ID: ruleUnknownTransition, Summary: "A transition that is named is declared."},
	{ID: ruleUnknownType, Summary: "A type is one of string, int, float, bool, time, bytes, json, decimal."},
	{ID: ruleBadDefault, Summary: "A default is a value of the field's type."},
	{ID: ruleUniqueType, Summary: "A unique key has no json or bytes field."},

	{ID: ruleNoSource, Summary: "A move has at least one source."},
	{ID: ruleMovesAndFrom, Summary: "A transition has either `from` and `to`, or `moves`."},
	{ID: ruleColumnSetTwice, Summary: "A column is set by the transition or by its move, not by both."},
	{ID: ruleSetOwnColumn, Summary: "id, status and version are written by the engine only."},
	{ID: ruleBadKey, Summary: "`key` is `required`, or args of the transition written args.NAME; row columns are none."},
	{ID: ruleIdentityNotWritten, Summary: "Every identity arg is written by the transition, in every move, as set: {field: args.NAME}."},
	{ID: ruleSecretKey, Summary: "A secret arg is not part of a key."},
	{ID: ruleOptionalKey, Summary: "An optional arg is not part of a key."},
	{ID: ruleSecretIdentity, Summary: "A secret arg is not part of an identity."},
	{ID: ruleNeedsJournal, Summary: "key, emit and secret need a journal."},
	{ID: ruleTimeoutFire, Summary: "A timeout fires a transition that leaves the state and needs neither args nor a caller's key."},

	{ID: ruleUnreachableState, Summary: "Every state can be reached from an initial one."},
	{ID: ruleDeadEnd, Summary: "A state that nothing leaves is final."},
	{ID: ruleFinalLeft, Summary: "A final state is left by nothing."},
	{ID: ruleAmbiguousMoves, Summary: "Of the moves of a transition out of one state only the last is unconditional."},
	{ID: ruleUnreachableBranch, Summary: "A branch or move can be taken: no earlier one takes everything, or has the same condition."},
	{ID: ruleUnconditionalBranch, Summary: "Only the last branch is unconditional."},
	{ID: ruleSelfMoveReads, Summary: "A move from a state to itself whose `set` reads a field has a key: else a repeat counts twice."},

	{ID: expr.RuleSyntax, Summary: "A condition or set value is an expression."},
	{ID: expr.RuleSize, Summary: "An expression has at most 2048 bytes, 200 operations and 40 levels."},
	{ID: expr.RuleUnsupported, Summary: "An expression uses only what means the same in Go and on every database."},
	{ID: expr.RuleUnknownName, Summary: "An expression reads fields, and args as args.NAME."},
	{ID: expr.RuleUnknownFunc, Summary: "The functions of the expression language are now() and duration('30m')."},
	{ID: expr.RuleNotReadable, Summary: "An expression does not read id, status or version."},
	{ID: expr.RuleType, Summary: "The two sides of an operation have one type, and a set value that of its field."},
	{ID: expr.RuleLiteral, Summary: "A literal fits its type exactly."},
	{ID: expr.RuleNil, Summary: "nil stands only where it has an effect."},
	{ID: expr.RuleNotNullable, Summary: "A field that is not nullable is never set to NULL."},
	{ID: expr.RuleDivisor, Summary: "A divisor does not itself divide."},
	{ID: expr.RuleFactors, Summary: "Float arithmetic stays within what all databases compute alike."},

	{ID: expr.RuleNilComparison, Warning: true, Summary: "!=, not and not in are not true for NULL."},
	{ID: ruleSelfMove, Warning: true, Summary: "A move from a state to itself without key: a repeat is applied again."},
	{ID: ruleChain, Warning: true, Summary: "A target that is a source of another move of the same transition, without key: a repeat moves on."},
	{ID: ruleMixedEntry, Warning: true, Summary: "A transition with effect, emit or identity shares its target with others and does not say `duplicates`."},
	{ID: ruleTimeoutNotFired, Warning: true, Summary: "Timeouts are stored and checked; nothing fires them until the sweeper comes."},
	{ID: ruleOwnWithoutLog, Warning: true, Summary: "Without a journal `duplicates: own` is the same as `refuse`."},
}

// Rules returns every rule a finding can name, those of the file first, then
// names, references, moves, the graph, expressions, and warnings.
func Rules() []Rule { return append([]Rule(nil), rules[:]...) }

func isWarning(id string) bool {
	for i := range rules {
		if rules[i].ID == id {
			return rules[i].Warning
		}
	}
	return false
}
