package main

import (
	"slices"
	"strings"
)

// viewingExpect states what the viewing history must answer.
func viewingExpect(a *app, e *expect) {
	v := &viewingChecks{app: a, expect: e, views: make(map[string][]row)}
	for _, r := range a.rows(viewingTable, func(r row) bool { return strings.Contains(text(r, "sk"), "|") }) {
		v.views[text(r, "profileId")] = append(v.views[text(r, "profileId")], r)
	}
	v.histories()
	v.paths()
	v.lists()
}

// A viewingChecks has the booked history rows by profile.
type viewingChecks struct {
	*app
	*expect
	views map[string][]row
}

func (v *viewingChecks) profiles() []string {
	return append(slices.Clone(profiles), hotProfile, doneProfile, emptyProfile, plainProfile, "profile-", "nobody")
}

func (v *viewingChecks) histories() {
	for _, p := range v.profiles() {
		rows := sorted(v.views[p], false, field("sk"))
		v.check("history", params{"profileId": p}, true, rows, &access{table: viewingTable, hash: "profileId", value: p,
			keep: func(r row) bool { return strings.Contains(text(r, "sk"), "|") }})
		for _, state := range []string{inProgress, completed} {
			var ids strs
			for _, r := range where(rows, "a.state", state) {
				ids = append(ids, text(r, "a.assetId"))
			}
			var want []row
			if ids != nil {
				want = []row{{"profileId": p, "sk": state, "assetIds": ids}}
			}
			v.derived("summary", params{"profileId": p, "state": state}, true, want)
		}
	}
}

// keep filters the rows of a profile.
func (v *viewingChecks) keep(p string, accept func(row) bool) []row {
	return slices.DeleteFunc(slices.Clone(v.views[p]), func(r row) bool { return !accept(r) })
}

func (v *viewingChecks) paths() {
	// under tells whether a path is this one or below it.
	under := func(name, path string) func(row) bool {
		return func(r row) bool { return text(r, name) == path || strings.HasPrefix(text(r, name), path+"/") }
	}
	for _, c := range [][3]string{{plainProfile, "14"}, {plainProfile, "1446"}, {plainProfile, "14", "55"}, {plainProfile, "14", "551"},
		{plainProfile, "14", "5"}, {plainProfile, "144"}, {plainProfile, "1446", "1450"}, {plainProfile, "55"}, {plainProfile, "9"},
		{"profile-1", "14"}, {"profile-1", "1446"}, {"profile-10", "шоу"}, {"профиль-4", "70", "145"}, {"プロフィール", "7"}, {"caf\u00e9", "144"},
		{hotProfile, "144"}, {hotProfile, "14", "1450"}, {emptyProfile, "14"}, {"nobody", "14"}} {
		p, path := params{"profileId": c[0], "showCategoryId": c[1]}, "/"+c[1]
		if c[2] != "" {
			p["seasonCategoryId"] = c[2]
			path += "/" + c[2]
		}
		v.check("by-show", p, false, v.keep(c[0], func(r row) bool {
			return text(r, "e.showCategoryId") == c[1] && (c[2] == "" || text(r, "e.seasonCategoryId") == c[2])
		}), v.pattern(c[0], "path.hierarchy", "/"+c[1], under("path.hierarchy", path)))
	}
	for _, c := range [][4]string{{plainProfile, "cricket"}, {plainProfile, "cricket", "4"}, {plainProfile, "cricket", "4", "60091"},
		{plainProfile, "cricket", "", "60091"}, {plainProfile, "cricket", "", "6009"}, {plainProfile, "rugby", "4", "1"}, {plainProfile, "crick"},
		{plainProfile, "cricket-t20"}, {"profile-2", "cricket", "41"}, {"profile-3", "テニス"}, {"🏏-fan", "cricket", "", "6009"}, {"cafe\u0301", "football", "5"},
		{hotProfile, "football", "", "60092"}, {"nobody", "cricket"}} {
		p, path := params{"profileId": c[0], "sport": c[1]}, "/"+c[1]
		if c[2] != "" {
			p["series"] = c[2]
			path += "/" + c[2]
		}
		if c[3] != "" {
			p["team"] = c[3]
		}
		plays := func(r row) bool {
			return c[3] == "" || slices.Contains(strings.Split(text(r, "e.team-ids"), ","), c[3])
		}
		v.check("by-sport", p, false, v.keep(c[0], func(r row) bool {
			return text(r, "e.sport") == c[1] && (c[2] == "" || text(r, "e.series-id") == c[2]) && plays(r)
		}), v.pattern(c[0], "path.sport", "/"+c[1], func(r row) bool { return under("path.sport", path)(r) && plays(r) }))
	}
}

func (v *viewingChecks) pattern(profile, path, begins string, keep func(row) bool) *access {
	return &access{table: viewingTable, index: path + "-index", hash: "profileId", value: profile, rng: path, op: "begins", arg: begins, keep: keep}
}

func (v *viewingChecks) lists() {
	in := func(r row, list string, names ...string) bool {
		return list != "" && slices.ContainsFunc(names, func(name string) bool {
			return r[name] != nil && slices.Contains(strings.Split(list, ","), text(r, name))
		})
	}
	some := func(p string, every int) string {
		var ids []string
		for i, r := range v.views[p] {
			if i%every == 0 {
				ids = append(ids, text(r, "a.assetId"))
			}
		}
		return strings.Join(ids, ",")
	}
	for _, c := range [][2]string{{plainProfile, "1981"}, {plainProfile, "1981,show-1,match-3,none"}, {plainProfile, "198,film-1"}, {"profile-1", some("profile-1", 9)},
		{"プロフィール", some("プロフィール", 13)}, {"профиль-4", some("профиль-4", 20)}, {hotProfile, some(hotProfile, 80)}, {emptyProfile, "1900"}, {"nobody", "1981"}} {
		v.check("by-assets", params{"profileId": c[0], "assetIds": c[1]}, false, v.keep(c[0], func(r row) bool { return in(r, c[1], "a.assetId") }), nil)
	}
	categories := []string{"e.showCategoryId", "e.seasonCategoryId"}
	for _, c := range [][2]string{{plainProfile, "14"}, {plainProfile, "55,1450"}, {plainProfile, "4,145"}, {"profile-10", "70,9"}, {"🏏-fan", "шоу"},
		{"cafe\u0301", "14,1446,none"}, {hotProfile, "9"}, {emptyProfile, "14"}, {"nobody", "14"}} {
		v.check("by-categories", params{"profileId": c[0], "categoryIds": c[1]}, false, v.keep(c[0], func(r row) bool { return in(r, c[1], categories...) }), nil)
	}
	for _, c := range [][3]string{{plainProfile, "1981,film-1", "14"}, {plainProfile, "show-1,show-2", "55"}, {plainProfile, "none", "none"}, {"profile-2", some("profile-2", 12), "9,70"},
		{"caf\u00e9", some("caf\u00e9", 15), "шоу"}, {hotProfile, "hot-00013,hot-00026,hot-00039", "145"}, {"nobody", "1981", "14"}} {
		v.check("by-assets-and-categories", params{"profileId": c[0], "assetIds": c[1], "categoryIds": c[2]}, false,
			v.keep(c[0], func(r row) bool { return in(r, c[1], "a.assetId") || in(r, c[2], categories...) }), nil)
	}
}
