package main

import (
	"fmt"
	"slices"
	"strings"
)

const viewingTable = "viewing-history"

var viewing = model{
	name: "viewing",
	tables: []tableSpec{{
		name: viewingTable, hash: "profileId", rng: "sk",
		lsis: []indexSpec{
			{name: "path.hierarchy-index", hash: "profileId", rng: "path.hierarchy"},
			{name: "path.sport-index", hash: "profileId", rng: "path.sport"},
		},
	}},
	play:   func(a *app) { (&viewingApp{app: a}).play() },
	expect: viewingExpect,
	form:   cliForm("page-%d.json.gz"),
	page:   1000,
}

const (
	inProgress = "IN_PROGRESS"
	completed  = "COMPLETED"

	hotProfile   = "profile-hot"
	doneProfile  = "profile-done"  // everything completed
	emptyProfile = "profile-empty" // had a history once
	plainProfile = "profile-plain" // the document's own examples, and the cases of the queries
)

var profiles = []string{"profile-1", "profile-10", "profile-2", "profile-3", "профиль-4", "プロフィール", "🏏-fan", "caf\u00e9", "cafe\u0301"}

// A viewingApp is the application that keeps what each profile has watched.
type viewingApp struct {
	*app
	assets []row // the catalogue: the e.* attributes and the id of each asset
}

func (v *viewingApp) play() {
	v.catalogue()
	v.documented()
	v.hot()
	v.live(v.times(2800), []deed{
		{60, v.watch}, {45, v.progress}, {40, v.complete}, {14, v.rewatch}, {8, v.again}, {14, v.forget}, {5, v.recut}, {5, v.idle},
		{4, v.moveProfile},
	})
	v.empty()
}

// catalogue makes the assets that there are to watch: episodes, films without a show, and matches.
func (v *viewingApp) catalogue() {
	shows := []string{"14", "144", "1446", "7", "70", "шоу"}
	sports := []string{"cricket", "cricket-t20", "football", "テニス"}
	for i := range 260 {
		asset := row{"assetId": fmt.Sprint(1900 + i*7), "assetType": one(v.app, []string{"tv-episode", "movie", "live-event"})}
		if i%10 == 0 {
			asset["assetId"] = one(v.app, []string{"épisode-", "試合-", "⚽-", "e\u0301pisode-"}) + fmt.Sprint(i)
		}
		if i%3 != 0 {
			asset["e.showCategoryId"] = one(v.app, shows)
			if i%3 == 1 {
				asset["e.seasonCategoryId"] = one(v.app, []string{"1450", "145", "14", "70", "9"})
			}
		}
		if i%4 < 2 {
			asset["e.sport"] = one(v.app, sports)
			if i%4 == 0 {
				asset["e.series-id"] = one(v.app, []string{"4", "41", "5"})
				asset["e.team-ids"] = one(v.app, []string{"60091,60092", "60092", "6009,60093", "60093,6009,60091"})
			}
		}
		v.assets = append(v.assets, asset)
	}
}

func historyKey(profile, state, asset string) row {
	return row{"profileId": profile, "sk": state + "|" + asset}
}

// view makes a row of the history, flattened, with its paths.
func (v *viewingApp) view(profile, state string, asset row) row {
	id, total := text(asset, "assetId"), 600+v.rand.IntN(9000)
	r := merge(historyKey(profile, state, id), row{"a.assetId": id, "a.assetType": asset["assetType"], "a.totalTime": n(total),
		"a.state": state, "a.updateTime": v.now()})
	seen := v.rand.IntN(total)
	if state == completed {
		seen = total - v.rand.IntN(60)
		r["m.timestamps"] = []any{r["a.updateTime"]}
	}
	r["a.progress"] = n(seen)
	r["a.progressPercentage"] = percentage(seen, total)
	return categorise(r, asset)
}

// percentage has two decimals at most, and no zeros at its end.
func percentage(seen, total int) num {
	hundredths := seen * 10000 / total
	s := fmt.Sprintf("%d.%02d", hundredths/100, hundredths%100)
	return num(strings.TrimSuffix(strings.TrimRight(s, "0"), "."))
}

// categorise sets a row's categories, and the paths that come of them.
func categorise(r, asset row) row {
	r = clone(r)
	for _, k := range []string{"e.showCategoryId", "e.seasonCategoryId", "e.sport", "e.series-id", "e.team-ids", "path.hierarchy", "path.sport"} {
		delete(r, k)
	}
	for k, val := range asset {
		if strings.HasPrefix(k, "e.") {
			r[k] = val
		}
	}
	path := func(name, top, sub string) {
		if r[top] == nil {
			return
		}
		p := "/" + text(r, top)
		if r[sub] != nil {
			p += "/" + text(r, sub)
		}
		r[name] = p
	}
	path("path.hierarchy", "e.showCategoryId", "e.seasonCategoryId")
	path("path.sport", "e.sport", "e.series-id")
	return r
}

// documented writes the document's examples, rows that are no history, and the cases that the queries must tell apart.
func (v *viewingApp) documented() {
	first := row{"assetId": "1981", "assetType": "tv-episode", "e.showCategoryId": "1446", "e.seasonCategoryId": "1450",
		"e.sport": "cricket", "e.series-id": "4", "e.team-ids": "60091,60092"}
	r := v.view(plainProfile, inProgress, first)
	v.write(put(viewingTable, merge(r, row{"a.totalTime": n(6604), "a.progress": n(2518), "a.progressPercentage": num("38.12"), "a.updateTime": "2021-01-27T23:37:42.155Z"})))
	v.finish(plainProfile, r)
	for i, c := range [][2]string{{"14", ""}, {"14", "55"}, {"14", "551"}, {"1446", ""}, {"144", "6"}, {"55", "14"}} {
		asset := row{"assetId": fmt.Sprintf("show-%d", i), "assetType": "tv-episode", "e.showCategoryId": c[0]}
		if c[1] != "" {
			asset["e.seasonCategoryId"] = c[1]
		}
		v.write(put(viewingTable, v.view(plainProfile, one(v.app, []string{inProgress, completed}), asset)))
	}
	for i, c := range [][3]string{{"cricket", "4", "6009"}, {"cricket", "41", "60091"}, {"cricket", "", "60091,60092"}, {"cricket-t20", "4", "60091"}, {"rugby", "4", ""}} {
		asset := row{"assetId": fmt.Sprintf("match-%d", i), "assetType": "live-event", "e.sport": c[0]}
		for j, k := range []string{"e.series-id", "e.team-ids"} {
			if c[j+1] != "" {
				asset[k] = c[j+1]
			}
		}
		v.write(put(viewingTable, v.view(plainProfile, one(v.app, []string{inProgress, completed}), asset)))
	}
	film := v.view(plainProfile, inProgress, row{"assetId": "film-1", "assetType": "movie"})
	v.write(put(viewingTable, merge(film, row{"x.big": num("12345678901234567890123456789012345678"), "x.small": num("-0.00000000000000000001"),
		"x.bytes": bin("\x00\xff"), "x.none": nil, "x.set": strs{"ä", "a"}, "x.numbers": nums{"10", "9", "0.5"}, "x.blobs": bins{"\x00", "\x01"},
		"x.deep": row{"a": []any{row{"b": list("c", "\"\\\n\u2028")}}}, "x.empty": ""})))
	v.write(put(viewingTable, row{"profileId": plainProfile, "sk": "SETTINGS", "autoplay": true}),
		put(viewingTable, row{"profileId": hotProfile, "sk": "DEVICE", "name": "телевизор"}),
		update(viewingTable, row{"profileId": plainProfile, "sk": "SETTINGS"}, row{"autoplay": false}))
}

// hot gives two profiles very long histories.
func (v *viewingApp) hot() {
	var ops []op
	for i := range v.times(1100) {
		state := []string{inProgress, completed, completed}[i%3]
		asset := merge(v.assets[i%len(v.assets)], row{"assetId": fmt.Sprintf("hot-%05d", i*13)})
		ops = append(ops, put(viewingTable, v.view(hotProfile, state, asset)))
	}
	for i := range v.times(160) {
		ops = append(ops, put(viewingTable, v.view(doneProfile, completed, merge(v.assets[i%len(v.assets)], row{"assetId": fmt.Sprintf("done-%d", i)}))))
	}
	v.batch(ops...)
	var gone []op
	for i := 0; i < len(ops); i += 9 {
		gone = append(gone, del(viewingTable, v.tables[viewingTable].key(ops[i].row)))
	}
	v.batch(gone...)
}

// anyView picks a row of one of the ordinary profiles in a state.
func (v *viewingApp) anyView(state string) (string, row, bool) {
	profile := one(v.app, profiles)
	for range 60 {
		asset := one(v.app, v.assets)
		if r := v.row(viewingTable, historyKey(profile, state, text(asset, "assetId"))); r != nil {
			return profile, r, true
		}
	}
	return "", nil, false
}

// watch begins an asset.
func (v *viewingApp) watch() {
	v.write(put(viewingTable, v.view(one(v.app, profiles), inProgress, one(v.app, v.assets))))
}

func (v *viewingApp) progress() {
	_, r, ok := v.anyView(inProgress)
	if !ok {
		return
	}
	at, seen := v.now(), v.rand.IntN(600)
	v.write(update(viewingTable, v.tables[viewingTable].key(r), row{"a.progress": n(seen), "a.updateTime": at,
		"a.progressPercentage": percentage(seen, 9600)}))
}

func (v *viewingApp) complete() {
	if profile, r, ok := v.anyView(inProgress); ok {
		v.finish(profile, r)
	}
}

// finish moves a row from one state to the other in one transaction, keeping the times of earlier completions.
func (v *viewingApp) finish(profile string, r row) {
	id, at := text(r, "a.assetId"), v.now()
	var times []any
	if before := v.row(viewingTable, historyKey(profile, completed, id)); before != nil {
		times, _ = before["m.timestamps"].([]any)
	}
	done := merge(r, historyKey(profile, completed, id), row{"a.state": completed, "a.updateTime": at,
		"a.progress": r["a.totalTime"], "a.progressPercentage": n(100), "m.timestamps": append(slices.Clone(times), at)})
	v.transact(del(viewingTable, historyKey(profile, inProgress, id)), put(viewingTable, done))
	if v.chance(0.1) { // the same completion, delivered again
		v.transact(del(viewingTable, historyKey(profile, inProgress, id)), put(viewingTable, done))
	}
}

// rewatch begins an asset again that was completed: both rows are there.
func (v *viewingApp) rewatch() {
	if profile, r, ok := v.anyView(completed); ok {
		again := merge(r, historyKey(profile, inProgress, text(r, "a.assetId")), row{"a.state": inProgress, "a.progress": n(3), "a.updateTime": v.now()})
		delete(again, "m.timestamps")
		v.write(put(viewingTable, again))
	}
}

// again completes an asset that is completed already, without having been seen in progress.
func (v *viewingApp) again() {
	if profile, r, ok := v.anyView(completed); ok {
		v.finish(profile, r)
	}
}

func (v *viewingApp) forget() {
	if _, r, ok := v.anyView(one(v.app, []string{inProgress, completed})); ok {
		v.write(del(viewingTable, v.tables[viewingTable].key(r)))
	}
}

// recut moves an asset to other categories, and with it a row.
func (v *viewingApp) recut() {
	if _, r, ok := v.anyView(one(v.app, []string{inProgress, completed})); ok {
		v.write(put(viewingTable, categorise(r, one(v.app, v.assets))))
	}
}

// moveProfile gives a row to another profile of the household.
func (v *viewingApp) moveProfile() {
	profile, r, ok := v.anyView(one(v.app, []string{inProgress, completed}))
	to := one(v.app, profiles)
	if ok && to != profile {
		v.transact(del(viewingTable, v.tables[viewingTable].key(r)), put(viewingTable, merge(r, row{"profileId": to})))
	}
}

// idle writes what is there already: no record comes of it.
func (v *viewingApp) idle() {
	if _, r, ok := v.anyView(inProgress); ok {
		v.write(put(viewingTable, r), del(viewingTable, historyKey("nobody", completed, text(r, "a.assetId"))))
	}
}

// empty makes a history and takes it all away.
func (v *viewingApp) empty() {
	var puts, dels []op
	for i, asset := range v.assets[:40] {
		r := v.view(emptyProfile, []string{inProgress, completed}[i%2], asset)
		puts = append(puts, put(viewingTable, r))
		dels = append(dels, del(viewingTable, v.tables[viewingTable].key(r)))
	}
	v.batch(puts...)
	v.batch(dels...)
}
