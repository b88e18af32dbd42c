package expr

import "strings"

// nearestField returns the legal name that an unknown bare name most likely stands
// for: an arg of exactly that name, a close field, a close arg.
func nearestField(name string, env Env) string {
	for _, v := range env.Args {
		if v.Name == name {
			return "args." + name
		}
	}
	if near := nearest(name, append(names(env.Fields), "true", "false", "nil")); near != "" {
		return near
	}
	if strings.EqualFold(name, "null") || strings.EqualFold(name, "none") {
		return "nil"
	}
	if near := nearest(name, names(env.Args)); near != "" {
		return "args." + near
	}
	return ""
}

// nearestArg is nearestField for args.NAME.
func nearestArg(name string, env Env) string {
	if near := nearest(name, names(env.Args)); near != "" {
		return "args." + near
	}
	for _, v := range env.Fields {
		if v.Name == name {
			return name
		}
	}
	return ""
}

func names(vars []Var) []string {
	out := make([]string, len(vars))
	for i, v := range vars {
		out[i] = v.Name
	}
	return out
}

// nearest returns the candidate with the fewest changed letters, the first of equals,
// or "" if more than a third would have to change. A name of one letter is like no other.
func nearest(name string, candidates []string) string {
	letters := len([]rune(name))
	best, least := "", max(min(letters, 2), letters/3+1)
	for _, c := range candidates {
		if d := distance(strings.ToLower(name), strings.ToLower(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// distance counts the letters inserted, dropped, replaced or swapped with their
// neighbour between a and b.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	var before []int // the row before prev
	prev, cur := make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		cur[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, make([]int, len(y)+1)
	}
	return prev[len(y)]
}
