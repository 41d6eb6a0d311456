package admin

import "github.com/holdfast-mq/holdfast/audit"

// AuditWords returns what channels, kinds and statuses a filter of the audit log can name.
func AuditWords() (channels []audit.Channel, kinds []audit.Kind, statuses []audit.Status) {
	return []audit.Channel{audit.APIOutbound, audit.DBOutbound, audit.Notification, audit.APIInbound, audit.Message, audit.Webhook, audit.Operator, audit.System},
		[]audit.Kind{
			audit.CachedCall, audit.NotifySend, audit.NotifyDeliver, audit.NotifyReach, audit.WebhookDeliver, audit.MessageSend, audit.MessageReceive, audit.APICall,
			audit.Retry, audit.Discard, audit.Reschedule, audit.Pause, audit.Resume, audit.ListChange, audit.ChannelKind, audit.TokenChange, audit.SiteChange,
			audit.TopicChange, audit.SubscriptionChange, audit.ScheduleChange, audit.Config, audit.SignIn, audit.Export, audit.HoldKind, audit.Release, audit.EraseKind,
			audit.Opened, audit.Purged, audit.KeyChange, audit.Copied, audit.Gap,
		},
		[]audit.Status{
			audit.Submitted, audit.Enqueued, audit.Attempted, audit.Delivered, audit.Parked, audit.Expired, audit.Discarded, audit.Success, audit.Refused, audit.Failed,
		}
}
