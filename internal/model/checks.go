package model

import "slices"

// runChecks runs all checks. Each looks at one part of the plan, or at the whole plan, for one kind of mistake. The plan holds
// whatever could be compiled, so a check skips broken parts.
// Problems are sorted by line, so the order decides nothing, but that two entities which overlap are known before other checks.
func (c *compiler) runChecks() {
	eachOf(c, c.Tables, checkIndexCount, checkLocalIndexes, checkTTL)
	eachOf(c, c.Entities, checkAttributes, checkRules, checkNew, checkNested, checkWhere)
	eachOf(c, c.soundEntities(), checkUniqueFields, checkSupersede, checkTemplateNames, checkTemplateTypes, checkSeparators)
	checkOneEntity(c)
	checkOneKey(c)
	checkOwnKeys(c)
	for _, k := range kinds {
		k.check(c)
	}
	checkLoops(c)
	eachOf(c, c.reads, checkImages, checkExpiring, checkKept)
	checkOldTables(c)
	eachOf(c, c.Migrations, checkMigrations)
	checkMigrationLoops(c)
	eachOf(c, c.Queries, checkSteps, checkUnique, checkReturns, checkSort)
	// Derivations without effect, and rows that no write can hold:
	eachOf(c, c.Entities, checkUnwritten)
	eachOf(c, c.Tallies, checkCounted)
	checkItself(c)
	checkWidths(c)
}

// eachOf runs checks over each part of a list.
func eachOf[T any](c *compiler, list []T, checks ...func(*compiler, T)) {
	for _, x := range list {
		for _, check := range checks {
			check(c, x)
		}
	}
}

// soundEntities returns the entities whose keys can be used.
func (c *compiler) soundEntities() []*Entity {
	return slices.DeleteFunc(slices.Clone(c.Entities), func(e *Entity) bool { return c.broken[e] })
}

// checkSteps checks the steps of a query. d is the declaration of a step, for places in messages.
func checkSteps(c *compiler, q *Query) {
	for _, s := range q.Steps {
		for _, check := range []func(c *compiler, q *Query, s *Step, d *stepDecl){
			checkGets, checkPartitions, checkRange, checkFilters, checkReads, checkAny, checkKinds, checkExpired, checkReadsEach,
		} {
			check(c, q, s, s.decl)
		}
	}
}
