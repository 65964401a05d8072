package dynamodb

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"weir/internal/doctor"
	"weir/internal/store"
)

// Look describes a table for doctor, and for a dry run. It changes nothing. A question that DynamoDB does not answer is noted in
// the facts, with the need; an error is that of the context, or a table that the store does not have.
func (s *Store) Look(ctx context.Context, name string) (doctor.Table, error) {
	if err := s.beginCall(ctx); err != nil {
		return doctor.Table{}, err
	}
	t, err := s.table(name)
	if err != nil {
		return doctor.Table{}, err
	}
	found, err := s.tableThere(ctx, t.Name)
	switch {
	case ctx.Err() != nil:
		return doctor.Table{}, ctx.Err()
	case err != nil:
		return doctor.Table{Want: *t, Unknown: Needs("dynamodb:DescribeTable", err)}, nil
	case found == nil:
		return doctor.Table{Want: *t, Missing: true}, nil
	}
	is := described(t, found)
	if ttl, err := s.ttl(ctx, t.Name); err != nil {
		is.TTL = doctor.Not[string](Needs("dynamodb:DescribeTimeToLive", err))
	} else {
		is.TTL = doctor.Known(ttl)
	}
	is.PITR = s.checkBackups(ctx, t.Name)
	return is, ctx.Err()
}

// checkBackups says whether point-in-time recovery is on.
func (s *Store) checkBackups(ctx context.Context, name string) doctor.Fact[bool] {
	out, err := asked(ctx, s, soon, s.db.DescribeContinuousBackups, &dynamodb.DescribeContinuousBackupsInput{TableName: &name})
	if err != nil {
		return doctor.Not[bool](Needs("dynamodb:DescribeContinuousBackups", err))
	}
	is := out.ContinuousBackupsDescription
	return doctor.Known(is != nil && is.PointInTimeRecoveryDescription != nil && is.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus == types.PointInTimeRecoveryStatusEnabled)
}

// Needs names the thing that is missing for an answer to a request with this action.
// The text stands behind "needs" in a finding. It names one thing: a permission, an endpoint, or an
// answer, with the service's words.
func Needs(action string, err error) string {
	var api smithy.APIError
	var resp *smithyhttp.ResponseError
	var dial *net.OpError
	switch {
	case Denied(err):
		return "the permission " + action
	case errors.As(err, &api) && api.ErrorCode() == "UnknownOperationException":
		return "AWS itself: this endpoint has no " + action
	case errors.As(err, &dial) && dial.Op == "dial":
		return "an endpoint that answers: " + dial.Error()
	case errors.As(err, &api):
		return "an answer to " + action + ": " + api.ErrorCode() + ", " + api.ErrorMessage()
	case errors.As(err, &resp):
		return "an answer to " + action + ": " + http.StatusText(resp.HTTPStatusCode())
	}
	return "an answer to " + action + ": " + err.Error()
}

// Denied reports whether a service refused a request for want of a permission. Credentials that are wrong are no
// such error: with them nothing is known of permissions.
func Denied(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode() {
	case "AccessDeniedException", "AccessDenied", "UnauthorizedOperation":
		return true
	}
	return false
}

// Ahead is how far the clock of this machine is ahead of the service's, once an answer has told its time.
func (s *Store) Ahead() doctor.Fact[time.Duration] {
	if !s.clock.told.Load() {
		return doctor.Not[time.Duration]("an answer of DynamoDB that tells its time")
	}
	return doctor.Known(s.clock.by())
}

// described is a table as DynamoDB describes it, beside its definition.
// It sends nothing: TTL, recovery and readers are asked by others.
func described(t *store.Table, have *types.TableDescription) doctor.Table {
	kinds := map[string]string{}
	for _, d := range have.AttributeDefinitions {
		kinds[aws.ToString(d.AttributeName)] = string(d.AttributeType)
	}
	is := doctor.Table{Want: *t, Status: string(have.TableStatus), Key: schemaText(have.KeySchema, kinds)}
	for _, l := range have.LocalSecondaryIndexes {
		is.Indexes = append(is.Indexes, doctor.Index{Name: aws.ToString(l.IndexName), Local: true, Key: schemaText(l.KeySchema, kinds), Projects: projected(l.Projection)})
	}
	for _, g := range have.GlobalSecondaryIndexes {
		is.Indexes = append(is.Indexes, doctor.Index{Name: aws.ToString(g.IndexName), Key: schemaText(g.KeySchema, kinds), Projects: projected(g.Projection), Status: string(g.IndexStatus)})
	}
	if on := have.StreamSpecification; on != nil && aws.ToBool(on.StreamEnabled) {
		is.Images = string(on.StreamViewType)
	}
	is.Region, is.Replicas = replicas(have)
	is.Strong = isStrong(have)
	is.OnDemand = have.BillingModeSummary != nil && have.BillingModeSummary.BillingMode == types.BillingModePayPerRequest
	if p := have.ProvisionedThroughput; p != nil {
		is.Read, is.Write = aws.ToInt64(p.ReadCapacityUnits), aws.ToInt64(p.WriteCapacityUnits)
	}
	is.Stream = aws.ToString(have.LatestStreamArn)
	return is
}

// projected is the type of a projection, in words if the service says none.
func projected(p *types.Projection) string {
	if p == nil {
		return "nothing that is said"
	}
	return string(p.ProjectionType)
}

// schemaText writes a key as doctor.KeyText does.
func schemaText(keys []types.KeySchemaElement, kinds map[string]string) string {
	var parts []string
	for _, k := range keys {
		name := aws.ToString(k.AttributeName)
		parts = append(parts, name+" ("+kinds[name]+")")
	}
	return strings.Join(parts, ", ")
}
