package verify

import "weir/internal/runner"

// recounts are the recounts of all kinds, in the order in which they report.
var recounts = []func(*runner.Verification) runner.Recount{
	newTallies, newStatuses, newCopies, newFollows, newFeeds, newSets, newDocuments,
}
