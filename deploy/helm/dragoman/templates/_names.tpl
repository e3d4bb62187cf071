{{- define "dragoman.name" -}}
{{ .Release.Name }}-dragoman
{{- end }}
{{- define "dragoman.labels" -}}
app.kubernetes.io/name: dragoman
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
