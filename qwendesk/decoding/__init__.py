"""Pictures, clips and documents, decoded in a short-lived process of their own whose memory is limited."""
